"""The difficulty estimators and embedding models there are. A new one is a line here."""

from typing import Final

ESTIMATORS: Final = {
    "heuristic": "classifiers.heuristic:HeuristicEstimator",
    "learned": "classifiers.learned:LearnedEstimator",
    "llm": "classifiers.llm:LlmEstimator",
}

EMBEDDERS: Final = {
    "onnx": "classifiers.embedding:OnnxModel",
    "sentence_transformers": "classifiers.embedding:SentenceTransformersModel",
    "static": "classifiers.embedding:StaticModel",
}

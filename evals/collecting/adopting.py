"""Takes over answers that `python -m evals collect` kept, so that they are not asked for again."""

from collections.abc import Mapping, Sequence

from cascade.tiers import ModelTier
from evals.collecting.journal import Answered, Journal, request_hash
from evals.datasets import Prompt
from evals.outcomes import Outcomes, OutcomesError, prompts_sha256


def adopt(
    outcomes: Outcomes,
    prompts: Sequence[Prompt],
    tiers: Mapping[str, ModelTier],
    models: Mapping[str, str],
    journal: Journal,
) -> int:
    """Write the answers of the same models to these prompts into the journal; how many are new.

    Args:
        outcomes: the file that holds them.
        prompts: the whole set that it answers.
        tiers: price them.
        models: the model of each tier.
        journal: takes them.

    Raises:
        OutcomesError: it answers other prompts, or no tier of it has the same model.
    """
    if prompts_sha256(prompts) != outcomes.manifest.prompts_sha256:
        raise OutcomesError("the kept answers are to other prompts than these")
    known = {tier: identity.model for tier, identity in outcomes.manifest.tiers.items()}
    same = [tier for tier, model in models.items() if known.get(tier) == model]
    if not same:
        there = ", ".join(f"{tier}: {model}" for tier, model in known.items())
        raise OutcomesError(f"the kept answers are of other models: {there}")
    before = len(journal.lines)
    for tier in same:
        answers = outcomes.answers(tier)
        for prompt in prompts:
            key, kept = request_hash(prompt), answers.get(prompt.id)
            if kept is None or journal.answer(key, tier, models[tier]) is not None:
                continue
            cost = tiers[tier].price(kept.usage)
            journal.append(
                Answered(
                    request=key,
                    tier=tier,
                    model=models[tier],
                    text=kept.text,
                    finish_reason=kept.finish_reason,
                    usage=kept.usage,
                    logprobs=kept.logprobs,
                    dollars=None if cost is None else cost.total,
                    seconds=kept.seconds,
                    first_token_seconds=kept.first_token_seconds,
                )
            )
    return len(journal.lines) - before

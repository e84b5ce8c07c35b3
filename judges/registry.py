"""The judges there are. A new one is a new file and a line here."""

from typing import Final

JUDGES: Final = {
    "format": "judges.format:FormatJudge",
    "logprob": "judges.logprob:LogprobJudge",
    "panel": "judges.panel:PanelJudge",
}

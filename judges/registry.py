"""The judges there are. A new one is a new file and a line here."""

from typing import Final

JUDGES: Final = {
    "agreement": "judges.agreement:AgreementJudge",
    "asked": "judges.asked:AskedJudge",
    "code": "judges.code:CodeJudge",
    "expected": "judges.expected:ExpectedJudge",
    "format": "judges.format:FormatJudge",
    "llm": "judges.llm:LlmJudge",
    "logprob": "judges.logprob:LogprobJudge",
    "panel": "judges.panel:PanelJudge",
    "rules": "judges.rules:RulesJudge",
    "working": "judges.working:WorkingJudge",
}

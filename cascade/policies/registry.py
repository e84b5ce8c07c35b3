"""The routing policies there are. A new one is a new file and a line here."""

from typing import Final

POLICIES: Final = {
    "fixed": "cascade.policies.fixed:FixedPolicy",
    "ladder": "cascade.policies.ladder:LadderPolicy",
    "utility": "cascade.policies.utility:UtilityPolicy",
}

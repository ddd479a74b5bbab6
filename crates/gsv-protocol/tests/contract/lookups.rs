//! The policy classes of machines' tools; `protocol/test/lookups.test.ts` is the twin.

use gsv_protocol::lookups::policy_class_of;
use gsv_protocol::types::PolicyClass;

#[test]
fn known_tools_have_their_class_and_every_other_tool_is_exec() {
    let rows = [
        ("Bash", PolicyClass::Exec),
        ("Process", PolicyClass::Exec),
        ("Read", PolicyClass::ReadPrivate),
        ("Glob", PolicyClass::ReadPrivate),
        ("Grep", PolicyClass::ReadPrivate),
        ("Write", PolicyClass::WriteFiles),
        ("Edit", PolicyClass::WriteFiles),
        ("Delete", PolicyClass::WriteFiles),
        ("Launch", PolicyClass::Exec),
        ("laptop__Read", PolicyClass::Exec),
        ("", PolicyClass::Exec),
    ];
    for (tool, class) in rows {
        assert_eq!(policy_class_of(tool), class, "{tool}");
    }
}

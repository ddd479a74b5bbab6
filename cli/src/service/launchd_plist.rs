//! The property list of a launchd agent. Pure.

use std::fmt::Write as _;

use super::spec::{Kind, Spec};

pub fn text(spec: &Spec) -> String {
    let (mut args, mut env) = (String::new(), String::new());
    for arg in std::iter::once(&spec.program).chain(&spec.args) {
        let _ = writeln!(args, "    <string>{}</string>", escaped(arg));
    }
    for (name, value) in &spec.env {
        let (name, value) = (escaped(name), escaped(value));
        let _ = write!(env, "    <key>{name}</key>\n    <string>{value}</string>\n");
    }
    let env = if env.is_empty() {
        env
    } else {
        format!("  <key>EnvironmentVariables</key>\n  <dict>\n{env}  </dict>\n")
    };
    let rules = match spec.kind {
        Kind::Gateway => "  <key>Umask</key>\n  <integer>63</integer>\n",
        // Commands of the agent outlive the node, and its next start follows them.
        Kind::Node => "  <key>AbandonProcessGroup</key>\n  <true/>\n",
    };
    // The programs write their own logs, which rotate; launchd's files would grow without a limit.
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by `{install}`, which also replaces it. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{label}</string>
  <key>ProgramArguments</key>
  <array>
{args}  </array>
{env}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>20</integer>
{rules}  <key>StandardOutPath</key>
  <string>/dev/null</string>
  <key>StandardErrorPath</key>
  <string>/dev/null</string>
</dict>
</plist>
"#,
        install = spec.kind.install(),
        label = escaped(&spec.name),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: Kind, args: &[&str], env: &[(&str, &str)]) -> Spec {
        let own = |text: &&str| (*text).to_owned();
        Spec {
            kind,
            name: "gsv-test".into(),
            description: String::new(),
            program: "/opt/gsv/bin/gsv".into(),
            args: args.iter().map(own).collect(),
            env: env.iter().map(|(name, value)| (own(name), own(value))).collect(),
        }
    }

    #[test]
    fn sv1_the_agent_of_the_gateway() {
        let spec = spec(
            Kind::Gateway,
            &["up", "--service"],
            &[("GSV_HOME", "/Users/me/a <b> & c")],
        );
        insta::assert_snapshot!("gateway_agent", text(&spec));
    }

    #[test]
    fn sv1_the_agent_of_a_node() {
        insta::assert_snapshot!("node_agent", text(&spec(Kind::Node, &["node", "--id", "laptop"], &[])));
    }
}

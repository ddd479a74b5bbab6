//! A unit file of systemd's user manager. Pure.

use std::fmt::Write as _;

use super::spec::{Kind, Spec};

/// The gateway runs nothing of the agent's, so it needs no new rights. Restrictions of the file system need a namespace, which not every
/// machine gives a user's manager.
const GATEWAY: &str = "\
KillMode=mixed
RestartPreventExitStatus=2
UMask=0077
LimitCORE=0
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
";
/// Commands of the agent outlive the node, and its next start follows them. Their sandbox (bubblewrap) may need namespaces or a program
/// with set-user-ID, which any hardening of the unit would take away.
const NODE: &str = "\
KillMode=process
RestartPreventExitStatus=2 3
OOMPolicy=continue
";

pub fn text(spec: &Spec) -> String {
    let mut command = quoted(&spec.program);
    for arg in &spec.args {
        command.push(' ');
        command.push_str(&quoted(arg));
    }
    let mut env = String::new();
    for (name, value) in &spec.env {
        let _ = writeln!(env, "Environment={}", quoted(&format!("{name}={value}")));
    }
    let rules = match spec.kind {
        Kind::Gateway => GATEWAY,
        Kind::Node => NODE,
    };
    // Since version 254, systemd waits longer after each failure; before, always RestartSec.
    format!(
        "# Written by `{install}`, which also replaces it.
[Unit]
Description={description}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=:{command}
{env}Restart=on-failure
RestartSec=5
RestartSteps=5
RestartMaxDelaySec=60
KillSignal=SIGTERM
TimeoutStopSec=20
{rules}
[Install]
WantedBy=default.target
",
        install = spec.kind.install(),
        description = spec.description.replace('%', "%%"),
    )
}

/// One word. The `:` of `ExecStart` keeps `$` as it is.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn spec(kind: Kind, args: &[&str], env: &[(&str, &str)]) -> Spec {
        let own = |text: &&str| (*text).to_owned();
        Spec {
            kind,
            name: "gsv-test".into(),
            description: "GSV gateway".into(),
            program: "/opt/gsv/bin/gsv".into(),
            args: args.iter().map(own).collect(),
            env: env.iter().map(|(name, value)| (own(name), own(value))).collect(),
        }
    }

    #[test]
    fn sv1_the_unit_of_the_gateway() {
        let spec = spec(Kind::Gateway, &["up", "--service"], &[("GSV_HOME", "/srv/my gsv")]);
        insta::assert_snapshot!("gateway_unit", text(&spec));
    }

    #[test]
    fn sv1_the_unit_of_a_node() {
        let args = [
            "node",
            "--service",
            "--id",
            "laptop",
            "--workspace",
            "/home/me/100% \"$x\\y\"",
        ];
        insta::assert_snapshot!("node_unit", text(&spec(Kind::Node, &args, &[])));
    }
}

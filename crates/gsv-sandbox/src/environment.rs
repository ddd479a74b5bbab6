//! The environment of a sandboxed command: a short list of names, and the sandbox's own folders. PURE.

use std::ffi::OsString;

use crate::caches::variables;
use crate::plan::Plan;

/// Names that every command gets. Everything else could be a secret.
pub const KEPT: [&str; 29] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "LANG",
    "LANGUAGE",
    "TZ",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
    "JAVA_HOME",
    "GOPATH",
    "GOROOT",
    "NVM_DIR",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "SSL_CERT_FILE",
];

/// Names that can't be passed on: GSV's own, and those that the sandbox sets.
pub fn is_reserved(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper == "GSV" || upper.starts_with("GSV_") || crate::caches::sets(name)
}

/// The variables of a command: kept ones, those that the owner named, and the sandbox's own.
pub fn environment(
    plan: &Plan,
    vars: impl IntoIterator<Item = (OsString, OsString)>,
    named: &[String],
) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &str| {
        !is_reserved(name)
            && (KEPT.contains(&name) || name.starts_with("LC_") || named.iter().any(|named| named == name))
    };
    let kept = vars.into_iter().filter(|(name, _)| name.to_str().is_some_and(is_kept));
    let own = variables(plan)
        .into_iter()
        .map(|(name, path)| (OsString::from(name), path.into_os_string()));
    kept.chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    #[test]
    fn sb8_only_named_variables_are_passed_on() {
        let plan = Plan {
            profile: Profile::Workspace,
            workspace: "/ws".into(),
            roots: vec![],
            writable: vec![],
            readable: None,
            hidden: vec![],
            own: "/own".into(),
            homes: vec![],
            program: None,
            read_only: false,
        };
        let vars = [
            "PATH",
            "OPENAI_API_KEY",
            "LC_ALL",
            "MINE",
            "GSV_TOKEN",
            "CARGO_HOME",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
        ];
        let vars = vars.map(|name| (OsString::from(name), OsString::from("x")));
        let extra = ["MINE".to_owned(), "GSV_TOKEN".to_owned()];
        let all = environment(&plan, vars, &extra);
        let names: Vec<&str> = all.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(
            names,
            [
                "PATH",
                "LC_ALL",
                "MINE",
                "CARGO_HOME",
                "npm_config_cache",
                "XDG_CACHE_HOME",
                "TMPDIR"
            ]
        );
        assert_eq!(all[3].1, "/own/cache/cargo");
    }
}

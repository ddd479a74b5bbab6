//! Files and folders of a home that hold credentials: no sandboxed command sees them. PURE.

use std::path::{Path, PathBuf};

/// Relative to the home of the user.
const SECRETS: &[&str] = &[
    // GSV's usual folders, also when this installation has others ($GSV_HOME, $GSV_CONFIG_DIR).
    ".gsv",
    ".config/gsv",
    // Keys and passwords.
    ".ssh",
    ".gnupg",
    ".password-store",
    ".netrc",
    ".authinfo",
    ".git-credentials",
    ".config/git/credentials",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/keepassxc",
    ".config/sops",
    ".age",
    ".config/age",
    ".config/borg",
    ".config/filezilla",
    ".filezilla",
    ".purple",
    ".Xauthority",
    ".msmtprc",
    ".fetchmailrc",
    ".mbsyncrc",
    ".subversion/auth",
    ".vnc/passwd",
    ".config/tigervnc/passwd",
    ".local/share/remmina",
    ".config/remmina",
    ".davfs2/secrets",
    ".smbcredentials",
    ".vault_pass",
    ".vault_pass.txt",
    ".config/keybase",
    ".local/share/keybase",
    ".mylogin.cnf",
    ".ICEauthority",
    ".putty",
    ".step/secrets",
    ".tsh/keys",
    ".doppler",
    ".infisical",
    // Clouds, hosts and registries.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/heroku",
    ".config/netlify",
    ".config/rclone",
    ".config/.wrangler",
    ".wrangler",
    ".fly",
    ".kube",
    ".docker",
    ".config/containers/auth.json",
    ".oci",
    ".boto",
    ".s3cfg",
    ".terraform.d/credentials.tfrc.json",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".huggingface",
    ".kaggle",
    ".openai",
    ".anthropic",
    ".terraformrc",
    ".pulumi/credentials.json",
    ".config/linode-cli",
    ".config/hcloud",
    ".config/scw",
    ".config/stripe",
    ".config/configstore",
    ".local/share/com.vercel.cli",
    ".railway",
    ".cloudflared",
    ".config/ngrok",
    ".ngrok2",
    ".mc",
    ".rclone.conf",
    ".sentryclirc",
    ".databrickscfg",
    ".snowsql",
    ".bundle/config",
    ".nuget/NuGet/NuGet.Config",
    ".config/pypoetry/auth.toml",
    ".local/share/uv/credentials",
    ".config/pip/pip.conf",
    ".config/nix/nix.conf",
    ".local/share/rbw",
    ".config/syncthing",
    ".local/state/syncthing",
    ".config/chezmoi",
    ".supabase/access-token",
    ".config/pnpm/auth.ini",
    ".config/pnpm/rc",
    ".config/turborepo/config.json",
    ".expo/state.json",
    ".config/tea",
    ".config/nextcloud",
    ".config/Nextcloud",
    ".composer/auth.json",
    ".pip/pip.conf",
    ".ivy2/.credentials",
    ".sbt/.credentials",
    ".hex/hex.config",
    ".pub-cache/credentials.json",
    ".config/dart/pub-credentials.json",
    ".config/helm/registry/config.json",
    ".saml2aws",
    ".config/argocd/config",
    ".argocd/config",
    ".talos/config",
    ".minikube/ca.key",
    ".circleci/cli.yml",
    ".gitlab-runner/config.toml",
    ".snowflake/config.toml",
    ".snowflake/connections.toml",
    ".dbt/profiles.yml",
    ".android/adbkey",
    ".appstoreconnect/private_keys",
    // Browsers and mail.
    ".mozilla",
    ".config/mozilla",
    ".thunderbird",
    ".offlineimaprc",
    ".config/offlineimap",
    ".config/isyncrc",
    ".config/msmtp",
    ".config/himalaya",
    ".config/aerc",
    ".config/neomutt",
    ".config/mutt",
    ".mutt",
    ".local/share/evolution",
    ".librewolf",
    ".config/librewolf",
    ".waterfox",
    ".zen",
    ".local/share/qutebrowser",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".config/Element",
    ".config/weechat/sec.conf",
    ".weechat/sec.conf",
    ".irssi/config",
    ".local/share/TelegramDesktop",
    ".electrum",
    ".bitcoin",
    ".ethereum",
    ".config/solana",
    ".monero",
    ".config/monero-project",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome",
    ".var/app/org.chromium.Chromium",
    ".var/app/com.brave.Browser",
    // Other agents.
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".config/opencode",
    ".local/share/opencode",
    ".config/goose",
    ".cursor",
    ".config/Cursor",
    ".config/github-copilot",
    ".copilot",
    ".continue",
    ".windsurf",
    ".factory/auth.json",
    ".qwen/oauth_creds.json",
    ".kiro",
    ".local/share/amp/secrets.json",
    ".config/io.datasette.llm/keys.json",
    ".config/anthropic",
    ".config/openai",
    ".config/Code/User/globalStorage",
    ".vscode-server/data",
    // What was typed into shells and clients.
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".irb_history",
    ".lesshst",
    ".dbshell",
    ".mongodb/mongosh",
    ".viminfo",
    ".local/share/atuin",
    ".ipython/profile_default/history.sqlite",
    ".local/state/nvim/shada/main.shada",
    ".Rhistory",
    // macOS.
    "Library/Keychains",
    "Library/Cookies",
    "Library/Safari",
    "Library/Mail",
    "Library/Messages",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Microsoft Edge",
    "Library/Application Support/1Password",
    "Library/Group Containers/2BUA8C4S2C.com.1password",
];

/// Settings that also hold credentials. Those that a folder of the owner has (dotfiles) are not hidden, because commands could not use the
/// folder then.
const SETTINGS: &[&str] = &[
    ".muttrc",
    ".config/fish/fish_variables",
    ".bunfig.toml",
    ".aider.conf.yml",
];

/// Files of the system that only root can read.
const OF_SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/letsencrypt",
    "/etc/NetworkManager/system-connections",
    "/etc/kubernetes",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
];

/// Credentials that only root can read, besides its own: those of the system and of the users with these homes.
#[must_use]
pub fn credentials_of_others(homes: &[PathBuf]) -> Vec<PathBuf> {
    let of_system = OF_SYSTEM.iter().map(PathBuf::from);
    of_system.chain(hidden(homes, &[])).collect()
}

/// All paths that no command sees, whether they exist or not: the credentials of each home, and GSV's own folders.
pub(crate) fn hidden(homes: &[PathBuf], private: &[PathBuf]) -> Vec<PathBuf> {
    let of_homes = homes
        .iter()
        .flat_map(|home| SECRETS.iter().chain(SETTINGS).map(move |secret| home.join(secret)));
    private.iter().cloned().chain(of_homes).collect()
}

/// Whether a hidden path is one of the settings that commands may see where the owner gives them the folder.
pub(crate) fn is_setting(path: &Path) -> bool {
    SETTINGS.iter().any(|name| path.ends_with(name))
}

/// Whether one of two paths is the other or lies in it.
pub(crate) fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::Disk;
    use crate::plan::{Plan, Request};
    use crate::profile::Profile;

    #[test]
    fn sb3_folders_of_clients_with_stored_passwords_are_hidden() {
        let hidden = hidden(&["/home/u".into()], &[]);
        for name in [
            ".config/filezilla",
            ".librewolf",
            ".purple",
            ".config/borg",
            ".local/share/keyrings",
            ".vnc/passwd",
            ".zen",
            ".muttrc",
            ".dbshell",
        ] {
            assert!(hidden.contains(&Path::new("/home/u").join(name)), "{name}");
        }
    }

    /// A file of each client, and what the plan must hide of it.
    const STORED: &[(&str, &str)] = &[
        (".gsv/gateway/token", ".gsv"),
        (".config/gsv/config.toml", ".config/gsv"),
        (".factory/auth.json", ""),
        (".qwen/oauth_creds.json", ""),
        (".kiro/settings/mcp.json", ".kiro"),
        (".local/share/amp/secrets.json", ""),
        (".config/io.datasette.llm/keys.json", ""),
        (".config/anthropic/credentials", ".config/anthropic"),
        (".config/openai/auth.json", ".config/openai"),
        (".aider.conf.yml", ""),
        (
            ".config/Code/User/globalStorage/state.vscdb",
            ".config/Code/User/globalStorage",
        ),
        (
            ".vscode-server/data/User/globalStorage/state.vscdb",
            ".vscode-server/data",
        ),
        (".composer/auth.json", ""),
        (".pip/pip.conf", ""),
        (".ivy2/.credentials", ""),
        (".sbt/.credentials", ""),
        (".hex/hex.config", ""),
        (".pub-cache/credentials.json", ""),
        (".config/dart/pub-credentials.json", ""),
        (".bunfig.toml", ""),
        (".config/helm/registry/config.json", ""),
        (".tsh/keys/proxy/user", ".tsh/keys"),
        (".step/secrets/root_ca_key", ".step/secrets"),
        (".saml2aws", ""),
        (".config/argocd/config", ""),
        (".argocd/config", ""),
        (".talos/config", ""),
        (".minikube/ca.key", ""),
        (".circleci/cli.yml", ""),
        (".gitlab-runner/config.toml", ""),
        (".doppler/.doppler.yaml", ".doppler"),
        (".infisical/infisical-config.json", ".infisical"),
        (".snowflake/config.toml", ""),
        (".snowflake/connections.toml", ""),
        (".dbt/profiles.yml", ""),
        (".mylogin.cnf", ""),
        (".android/adbkey", ""),
        (".putty/key.ppk", ".putty"),
        (
            ".appstoreconnect/private_keys/AuthKey.p8",
            ".appstoreconnect/private_keys",
        ),
        (".ICEauthority", ""),
        (".ipython/profile_default/history.sqlite", ""),
        (".local/state/nvim/shada/main.shada", ""),
        (".Rhistory", ""),
    ];
    /// What builds, editors and shells read on a normal day, beside these.
    const READ: &[&str] = &[
        ".cargo/config.toml",
        ".gitconfig",
        ".config/git/config",
        ".yarnrc",
        ".condarc",
        ".erlang.cookie",
        ".ivy2/cache/a.jar",
        ".sbt/boot/sbt.boot.lock",
        ".hex/cache.ets",
        ".pub-cache/hosted/a",
        ".android/debug.keystore",
        ".config/Code/User/settings.json",
        ".vscode-server/bin/server",
        ".config/helm/repositories.yaml",
        ".ipython/profile_default/startup/a.py",
        ".local/state/nvim/swap/a",
        ".tsh/config/config.yaml",
        ".step/certs/root_ca.crt",
    ];

    #[test]
    fn sb3_stored_credentials_are_hidden_and_the_files_beside_them_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for file in STORED.iter().map(|(file, _)| file).chain(READ) {
            std::fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            std::fs::write(home.join(file), "x").unwrap();
        }
        for folder in ["ws", "own"] {
            std::fs::create_dir(home.join(folder)).unwrap();
        }
        let request = Request {
            profile: Profile::Workspace,
            workspace: home.join("ws"),
            writable: vec![],
            readable: vec![],
            caches: vec![],
            // This installation has its state elsewhere.
            private: vec![home.join("state")],
            homes: vec![home.clone()],
            own: home.join("own"),
        };
        let hidden = Plan::new(&request, &Disk).unwrap().hidden_now(&Disk).unwrap();
        for (file, as_hidden) in STORED {
            let path = home.join(if as_hidden.is_empty() { file } else { as_hidden });
            assert!(hidden.contains(&path), "{file}");
        }
        for file in READ {
            assert!(!hidden.iter().any(|path| home.join(file).starts_with(path)), "{file}");
        }
    }
}

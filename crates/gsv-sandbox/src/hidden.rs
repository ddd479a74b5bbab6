//! Files and folders of a home that hold credentials: no sandboxed command sees them. PURE.

use std::path::{Path, PathBuf};

/// Relative to the home of the user.
const SECRETS: &[&str] = &[
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
const SETTINGS: &[&str] = &[".muttrc", ".config/fish/fish_variables"];

/// Of the system; only root can read them.
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
}

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
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
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
    // What was typed into shells and clients.
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
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

/// All paths that no command sees, whether they exist or not: the credentials of each home, and GSV's own folders.
pub(crate) fn hidden(homes: &[PathBuf], private: &[PathBuf]) -> Vec<PathBuf> {
    let of_homes = homes
        .iter()
        .flat_map(|home| SECRETS.iter().map(move |secret| home.join(secret)));
    private.iter().cloned().chain(of_homes).collect()
}

/// Whether one of two paths is the other or lies in it.
pub(crate) fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

//! Names of files and folders from which programs take commands, and of folders in which none are searched.

use std::ffi::OsStr;

/// Names that are protected in the workspace, in each project folder in it, and where a home has a link with such a name.
pub(crate) const NAMES: &[&str] = &[
    ".envrc",
    ".autoenv.zsh",
    ".bashrc",
    ".bash_aliases",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".login",
    ".logout",
    ".cshrc",
    ".tcshrc",
    ".kshrc",
    ".mkshrc",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".inputrc",
    ".editrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".tmux.conf",
    ".screenrc",
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".helix",
    ".nvim.lua",
    ".nvimrc",
    ".lazy.lua",
    ".exrc",
    ".vimrc",
    ".vim",
    ".gvimrc",
    ".lvimrc",
    ".ideavimrc",
    ".nanorc",
    ".emacs",
    ".emacs.el",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".mise.toml",
    "mise.toml",
    "mise.local.toml",
    ".mcp.json",
    ".claude",
    ".cursor",
    ".codex",
    ".copilot",
    ".gemini",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".windsurf",
    ".continue",
    ".kiro",
    ".amazonq",
    ".qwen",
    ".roo",
    ".aider.conf.yml",
    ".devcontainer",
    ".husky",
    ".gdbinit",
    ".lldbinit",
    ".pdbrc",
    ".perldb",
    ".irbrc",
    ".pryrc",
    ".iex.exs",
    ".ghci",
    ".ocamlinit",
    ".Rprofile",
    ".psqlrc",
    ".sqliterc",
    ".lessfilter",
    ".mailcap",
];

/// Files and folders of a home from which programs take commands, besides `NAMES`. Links in the folders are followed.
pub(crate) const OF_HOME: &[&str] = &[
    ".config/autostart",
    ".config/bash",
    ".config/direnv",
    ".config/doom",
    ".config/emacs",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/helix",
    ".config/kak",
    ".config/mise",
    ".config/nano",
    ".config/nushell",
    ".config/nvim",
    ".config/systemd/user",
    ".config/tmux",
    ".config/vim",
    ".config/zed",
    ".config/zsh",
    ".bashrc.d",
    ".doom.d",
    ".direnvrc",
    ".emacs.d",
    ".gitattributes",
    ".gitconfig",
    ".hgrc",
    ".oh-my-zsh/custom",
    ".ssh/config",
    ".ssh/rc",
    ".vim",
    ".zsh",
    ".zshrc.d",
    "Library/LaunchAgents",
];

/// The folder of a repository of Mercurial, and its file that names hooks.
pub(crate) const MERCURIAL: (&str, &str) = (".hg", "hgrc");

/// What makes a folder a bare repository. A command that moved them away would hide the repository from the next search.
pub(crate) const OF_BARE: [&str; 2] = ["objects", "refs"];
/// A folder with none of these is not looked at as a repository.
pub(crate) const OF_GIT: [&str; 2] = [".git", OF_BARE[0]];

/// Names that are protected in a git directory. `commondir` and `gitdir` say where a worktree has its configuration and hooks.
pub(crate) const IN_GIT: &[&str] = &[
    "config",
    "config.worktree",
    "hooks",
    "info/attributes",
    "commondir",
    "gitdir",
];

/// Whether a search goes into a folder with this name. Git directories are looked at by themselves (git.rs), and `node_modules` has too many
/// folders.
pub(crate) fn is_searched(name: &OsStr) -> bool {
    name != ".git" && name != "node_modules"
}

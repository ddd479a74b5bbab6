//! The key of the secrets that the gateway on this machine stores (gateway rules A7 to A9). It is in the configuration folder, so that a
//! copy of the state folder alone opens none of them. Each Worker gets keys of its own, derived from it, in the environment of workerd:
//! never as an argument, and never in a file of the state folder.

use std::fmt::Write;
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};

use super::channel_file;
use super::channel_name::Name;
use super::layout::Layout;
use crate::exit::{Exit, Failure, Outcome};
use crate::{paths, private_file};

const FILE: &str = "secrets.key";
const KEY_BYTES: usize = 32;
/// As many as the gateway takes.
const MAX_KEYS: usize = 8;
const MAX_MARKS: usize = 16;
/// The variable of the gateway's own keys.
pub const GATEWAY: &str = "GSV_SEALING_KEYS";

/// The variable of a channel's keys. No name of a channel has upper case letters, so this is no other variable.
pub fn channel(name: &Name) -> String {
    format!("{GATEWAY}_{name}")
}

/// The variable that gives a channel one of its own variables, which may be secret. Those begin with an upper case letter.
pub fn channel_var(name: &Name, var: &str) -> String {
    format!("GSV_CHANNEL_{name}_{var}")
}

/// What workerd gets in its environment: the keys of each Worker, and the variables of the channels that run.
pub fn environment(layout: &Layout, keys: Option<&SealingKeys>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if let Some(keys) = keys {
        all.push((GATEWAY.to_owned(), keys.for_worker("gateway")));
    }
    // A file that can't be read is reported by `gsv up`, and no channel runs.
    let content = channel_file::read(layout).unwrap_or_default();
    for (name, entry) in content.channels.iter().filter(|(_, entry)| entry.enabled) {
        if let Some(keys) = keys {
            all.push((channel(name), keys.for_worker(&format!("channel {name}"))));
        }
        for (var, value) in &entry.vars {
            all.push((channel_var(name, var), value.clone()));
        }
    }
    all
}
const HEAD: &str = "\
# The key of the secrets that GSV stores on this machine: keys of model providers, logins of channels.
# Keep a copy in a safe place, apart from copies of the state folder. Without it the secrets must be entered again.
# The first line with a key seals, further lines only open what they have sealed.
";
const REPAIR: &str = "Put a copy of the file back. Or move it away and run `gsv down && gsv up`: a new key is made, and the stored secrets must be entered again.";

/// The keys of this machine, the first one first. They have no `Debug`, so they cannot get into a log.
pub struct SealingKeys(Vec<[u8; KEY_BYTES]>);

pub fn path() -> Outcome<PathBuf> {
    Ok(paths::config_dir()?.join(FILE))
}

/// Makes the file, if there is none, and notes in the state folder which keys its secrets may be sealed with. The caller holds the
/// command lock. Returns a warning when none of these keys is in the file.
pub fn ensure(layout: &Layout) -> Outcome<Option<String>> {
    let keys = SealingKeys::ensure_file()?;
    let path = layout.sealing_mark();
    let text = private_file::read_private(&path, "Remove it, then run `gsv up` again.")?.unwrap_or_default();
    let (marks, is_lost) = marks_after(&text, &keys);
    if marks != text {
        private_file::write(&path, marks)?;
    }
    is_lost.then(|| warning(layout)).transpose()
}

/// Adds the keys of a backup after those of this machine, which go on to seal. Returns how many were new.
pub fn merge(text: &str) -> Outcome<usize> {
    let from_backup = parse(text).map_err(|why| {
        let message = format!("The key of stored secrets in the backup cannot be used: {why}.");
        Failure::failed(message, "Restore another backup.")
    })?;
    let mut keys = SealingKeys::read()?.map_or_else(Vec::new, |keys| keys.0);
    let before = keys.len();
    for key in from_backup.0 {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let added = keys.len() - before;
    if keys.len() > MAX_KEYS {
        return Err(Failure::failed(
            format!("{} would have more than {MAX_KEYS} keys.", path()?.display()),
            "Remove keys from it that nothing uses any more, and keep a copy. Then run the command again.",
        ));
    }
    if added > 0 {
        let mut lines = String::new();
        for key in &keys {
            let _ = writeln!(lines, "{}", HEXLOWER.encode(key));
        }
        paths::ensure_private_dir(&paths::config_dir()?)?;
        private_file::write(&path()?, format!("{HEAD}{lines}"))?;
    }
    Ok(added)
}

/// Whether a key of this machine is one that the secrets of a state folder are sealed with. A state without marks has none.
pub fn opens(layout: &Layout) -> Outcome<bool> {
    let text = private_file::read_private(&layout.sealing_mark(), REPAIR)?.unwrap_or_default();
    let keys = SealingKeys::read()?;
    Ok(text.is_empty() || keys.is_some_and(|keys| !marks_after(&text, &keys).1))
}

/// The marks of the keys in use, then the earlier ones; and whether there were marks, and none was of a key in use.
fn marks_after(before: &str, keys: &SealingKeys) -> (String, bool) {
    let mut marks: Vec<String> = keys.0.iter().map(mark).collect();
    let is_lost = !before.is_empty() && !before.lines().any(|line| marks.iter().any(|mark| mark == line));
    for line in before.lines() {
        if marks.len() < MAX_MARKS && !marks.iter().any(|mark| mark == line) {
            marks.push(line.to_owned());
        }
    }
    (format!("{}\n", marks.join("\n")), is_lost)
}

fn warning(layout: &Layout) -> Outcome<String> {
    Ok(format!(
        "the secrets in {} were sealed with a key that is not in {}. Put the earlier file back, or add its key as a further line, then run `gsv down && gsv up`. Or enter the secrets again: `gsv doctor` names them",
        layout.home.display(),
        path()?.display(),
    ))
}

impl SealingKeys {
    /// `None`: there is no file.
    pub fn read() -> Outcome<Option<Self>> {
        let path = path()?;
        let Some(text) = private_file::read_checked(&path, REPAIR, |meta, _| paths::check_key_file(&path, meta))?
        else {
            return Ok(None);
        };
        parse(&text)
            .map(Some)
            .map_err(|why| private_file::unusable(&path, why, REPAIR))
    }

    /// Makes the file, if there is none.
    pub fn ensure_file() -> Outcome<Self> {
        match Self::read()? {
            Some(keys) => Ok(keys),
            None => Self::make(),
        }
    }

    fn make() -> Outcome<Self> {
        let mut key = [0_u8; KEY_BYTES];
        SystemRandom::new().fill(&mut key).map_err(|_| {
            let message = "The system gave no random bytes.";
            Failure::new(Exit::Bug, message, "Check that /dev/urandom works.")
        })?;
        paths::ensure_private_dir(&paths::config_dir()?)?;
        private_file::write(&path()?, format!("{HEAD}{}\n", HEXLOWER.encode(&key)))?;
        Ok(Self(vec![key]))
    }

    /// A text that only these keys open, for a file of this machine. Hex: nonce, ciphertext, tag.
    pub fn seal(&self, purpose: &str, text: &str) -> Outcome<String> {
        let failed = || {
            Failure::new(
                Exit::Bug,
                "The system gave no random bytes.",
                "Check that /dev/urandom works.",
            )
        };
        let mut nonce = [0_u8; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| failed())?;
        let cipher = self.0.first().and_then(|key| cipher(key, purpose)).ok_or_else(failed)?;
        let mut sealed = text.as_bytes().to_vec();
        let aad = Aad::from(purpose.as_bytes());
        cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .map_err(|_| failed())?;
        Ok(HEXLOWER.encode(&[&nonce[..], &sealed].concat()))
    }

    /// `None`: none of the keys opens it, or it was changed.
    pub fn open(&self, purpose: &str, sealed: &str) -> Option<String> {
        let bytes = HEXLOWER.decode(sealed.as_bytes()).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        self.0.iter().find_map(|key| {
            let mut text = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let aad = Aad::from(purpose.as_bytes());
            let opened = cipher(key, purpose)?.open_in_place(nonce, aad, &mut text).ok()?;
            String::from_utf8(opened.to_vec()).ok()
        })
    }

    /// The key with which the instances of a cluster know each other (rule CL4).
    pub fn for_cluster(&self) -> Outcome<String> {
        self.first("cluster").map(|key| HEXLOWER.encode(&key))
    }

    /// A key for this purpose, from the key that seals. Fails when there is none: everybody would know what is derived from nothing.
    pub fn first(&self, purpose: &str) -> Outcome<[u8; KEY_BYTES]> {
        match self.0.first() {
            Some(key) => Ok(derived(key, purpose)),
            None => Err(private_file::unusable(&path()?, "it has no key", REPAIR)),
        }
    }

    /// The value of a Worker's `SEALING_KEYS`. `purpose` names the Worker.
    pub fn for_worker(&self, purpose: &str) -> String {
        let mut text = String::new();
        for key in &self.0 {
            let _ = write!(text, "{} ", HEXLOWER.encode(&derived(key, purpose)));
        }
        text.trim_end().to_owned()
    }
}

fn parse(text: &str) -> Result<SealingKeys, &'static str> {
    let mut keys = Vec::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let key = HEXLOWER.decode(line.to_ascii_lowercase().as_bytes()).ok();
        keys.push(
            key.and_then(|key| key.try_into().ok())
                .ok_or("it has a line that is no key of 64 hex digits")?,
        );
    }
    match keys.len() {
        0 => Err("it has no key"),
        1..=MAX_KEYS => Ok(SealingKeys(keys)),
        _ => Err("it has more than 8 keys"),
    }
}

/// The lengths are right, so this does not fail.
fn derived(key: &[u8; KEY_BYTES], purpose: &str) -> [u8; KEY_BYTES] {
    let mut out = [0_u8; KEY_BYTES];
    let info = [purpose.as_bytes()];
    let filled = Salt::new(HKDF_SHA256, b"gsv sealing keys")
        .extract(key)
        .expand(&info, HKDF_SHA256)
        .and_then(|okm| okm.fill(&mut out));
    debug_assert!(filled.is_ok());
    out
}

fn cipher(key: &[u8; KEY_BYTES], purpose: &str) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, &derived(key, purpose))
        .ok()
        .map(LessSafeKey::new)
}

/// Says which key it is, and nothing about it: the tag of an empty text under a key that is used for nothing else.
fn mark(key: &[u8; KEY_BYTES]) -> String {
    let Ok(cipher) = UnboundKey::new(&AES_256_GCM, &derived(key, "mark")) else {
        return String::new();
    };
    let nonce = Nonce::assume_unique_for_key([0; 12]);
    let tag = LessSafeKey::new(cipher).seal_in_place_separate_tag(nonce, Aad::empty(), &mut []);
    tag.map_or_else(|_| String::new(), |tag| HEXLOWER.encode(tag.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a8_each_worker_has_keys_of_its_own() {
        let keys = parse(&format!("{HEAD}{}\n\n{}\n", "ab".repeat(32), "CD".repeat(32)))
            .ok()
            .unwrap();
        let gateway = keys.for_worker("gateway");
        let channel = keys.for_worker("channel discord");
        assert_eq!(gateway.len(), 64 + 1 + 64);
        assert_ne!(gateway, channel);
        assert!(!gateway.contains(&"ab".repeat(32)) && !gateway.contains(&"cd".repeat(32)));
        assert_eq!(gateway, keys.for_worker("gateway"));
    }

    #[test]
    fn cl4_the_keys_of_a_cluster_follow_from_the_first_key_alone() {
        let (one, same, other) = (
            SealingKeys(vec![[1; 32], [2; 32]]),
            SealingKeys(vec![[1; 32]]),
            SealingKeys(vec![[2; 32], [1; 32]]),
        );
        assert_eq!(one.for_cluster().unwrap(), same.for_cluster().unwrap());
        assert_ne!(one.for_cluster().unwrap(), other.for_cluster().unwrap());
        assert_eq!(one.for_cluster().unwrap().len(), 64);
        assert!(SealingKeys(Vec::new()).for_cluster().is_err());
        assert!(!one.for_worker("gateway").contains(&one.for_cluster().unwrap()));
    }

    #[test]
    fn a8_a_damaged_key_file_is_refused_without_its_content() {
        for (text, why) in [
            ("", "it has no key"),
            ("# only words\n", "it has no key"),
            ("abcd\n", "it has a line that is no key of 64 hex digits"),
            (&format!("{}\n", "ab".repeat(32)).repeat(9), "it has more than 8 keys"),
        ] {
            assert_eq!(parse(text).err(), Some(why), "{text}");
        }
    }

    #[test]
    fn a8_a_start_without_any_earlier_key_is_noticed_once_and_the_earlier_key_is_known_when_it_is_back() {
        let (old, new) = (SealingKeys(vec![[1; 32]]), SealingKeys(vec![[2; 32]]));
        let (first, is_lost) = marks_after("", &old);
        assert!(!is_lost);
        let (second, is_lost) = marks_after(&first, &new);
        assert!(is_lost);
        assert_eq!(marks_after(&second, &new), (second.clone(), false));
        assert!(!marks_after(&second, &old).1);
    }

    #[test]
    fn bk15_what_is_sealed_is_opened_by_the_same_key_for_the_same_purpose_only() {
        let (old, new) = (SealingKeys(vec![[1; 32]]), SealingKeys(vec![[2; 32], [1; 32]]));
        let sealed = old.seal("backups", "five words").unwrap();
        assert!(!sealed.contains(&HEXLOWER.encode(b"five words")));
        assert_ne!(sealed, old.seal("backups", "five words").unwrap());
        for keys in [&old, &new] {
            assert_eq!(keys.open("backups", &sealed).as_deref(), Some("five words"));
        }
        assert_eq!(old.open("other", &sealed), None);
        assert_eq!(SealingKeys(vec![[2; 32]]).open("backups", &sealed), None);
        for changed in ["", "00", "no hex", &sealed[2..]] {
            assert_eq!(old.open("backups", changed), None, "{changed}");
        }
    }

    #[test]
    fn a8_a_mark_tells_keys_apart() {
        assert_eq!(mark(&[1; 32]), mark(&[1; 32]));
        assert_ne!(mark(&[1; 32]), mark(&[2; 32]));
        assert_eq!(mark(&[1; 32]).len(), 32);
    }
}

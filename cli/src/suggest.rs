//! "Did you mean": the nearest of some known names. Pure.

/// The name nearest to `wrong`, if one is near enough to be meant: an edit for every three letters, three at most.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["url", "token", "node.token"];
        assert_eq!(nearest("tokn", known), Some("token"));
        assert_eq!(nearest("node.tokn", known), Some("node.token"));
        assert_eq!(
            nearest("toekn", known),
            Some("token"),
            "two letters that changed places"
        );
        for far in ["colour", "user", "hook", "node.url"] {
            assert_eq!(nearest(far, known), None, "{far}");
        }
    }
}

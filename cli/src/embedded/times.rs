//! How long workerd may take to start and to end. In a cluster both take longer.

use std::time::Duration;

use super::cluster;
use super::layout::Layout;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Until it answers.
    pub start: Duration,
    /// From the request to end.
    pub stop: Duration,
}

/// All state is on disk already.
const ALONE: Times = Times {
    start: Duration::from_secs(30),
    stop: Duration::from_millis(250),
};
/// The objects of an instance that was killed are free after its lease of 20 s. One that ends gives its objects to the others: more than
/// workerd's own limit of 8 s (`stopTimeoutMs`).
const IN_CLUSTER: Times = Times {
    start: Duration::from_secs(60),
    stop: Duration::from_secs(10),
};

impl Times {
    pub fn of(layout: &Layout) -> Self {
        if cluster::is_joined(layout) { IN_CLUSTER } else { ALONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cl7_a_home_of_a_cluster_has_10_s_to_hand_its_objects_over_and_60_s_to_start() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: dir.path().to_owned(),
        };
        layout.ensure().unwrap();
        assert_eq!(Times::of(&layout), ALONE);
        std::fs::write(layout.cluster(), "").unwrap();
        let times = Times::of(&layout);
        assert_eq!((times.start.as_secs(), times.stop.as_secs()), (60, 10));
    }
}

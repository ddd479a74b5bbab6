//! The name under which `copy_listing` uses the retry at the rate limit.

pub use super::rate_limit::retry_silently as patiently;

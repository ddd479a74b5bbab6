//! How long to wait before the next attempt.

use super::interface::Millis;

/// Full jitter between `min` and the doubled wait, which never passes `max`.
pub fn backoff(min: Millis, max: Millis, failures: u32, jitter: f64) -> Millis {
    let ceiling = min
        .saturating_mul(2u64.saturating_pow(failures.saturating_add(1).min(32)))
        .clamp(min, max.max(min));
    let span = ceiling - min;
    let share = if jitter.is_finite() {
        jitter.clamp(0.0, 1.0)
    } else {
        0.5
    };
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "spans are far below 2^52 and not negative"
    )]
    let offset = (span as f64 * share) as Millis;
    min + offset.min(span)
}

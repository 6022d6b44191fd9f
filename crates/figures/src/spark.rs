//! A line of eighths of blocks: how a figure went, in one row of a terminal.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last `width` values. The height is logarithmic between the smallest and the largest, because latency
/// under overload grows by powers of ten. A blank where there is no value.
pub fn line(values: &[f64], width: usize) -> String {
    let shown = &values[values.len().saturating_sub(width)..];
    let present = || shown.iter().copied().filter(|value| *value > 0.0);
    let (low, high) =
        present().fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    shown.iter().map(|value| if *value > 0.0 { block(*value, low, high) } else { ' ' }).collect()
}

fn block(value: f64, low: f64, high: f64) -> char {
    // Below a doubling the line would show noise as mountains.
    let span = (high / low).ln().max(2f64.ln());
    let height = (value / low).ln() / span * (BLOCKS.len() - 1) as f64;
    BLOCKS[(height.round() as usize).min(BLOCKS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn the_largest_is_the_highest() {
        assert_eq!(line(&[1.0, 10.0, 100.0, 0.0, 1.0], 80), "▁▅█ ▁");
        assert_eq!(line(&[1.0, 10.0, 100.0], 2), "▁█");
        assert_eq!(line(&[5.0, 5.0], 80), "▁▁");
        assert_eq!(line(&[1.0, 1.02], 80), "▁▁");
        assert_eq!(line(&[], 80), "");
    }
}

//! Least squares without derivatives: the simplex of Nelder and Mead (Computer Journal 7, 1965).
//!
//! It must never know what the numbers mean.

type Point = (Vec<f64>, f64);

/// A place near `start` where `cost` is least, searched with steps of about `step`, and the cost there.
/// Costs must be finite.
pub(crate) fn least(start: &[f64], step: f64, cost: &mut impl FnMut(&[f64]) -> f64) -> Point {
    // Each round begins anew around the best place: a simplex that has become flat stops too early.
    const ROUNDS: u32 = 3;
    let mut best = (start.to_vec(), cost(start));
    for round in 0..ROUNDS {
        let reach = step / f64::from(2_u32.pow(round));
        best = descend(best, reach, cost);
    }
    best
}

fn descend(start: Point, step: f64, cost: &mut impl FnMut(&[f64]) -> f64) -> Point {
    let dimensions = start.0.len();
    let mut simplex = vec![start];
    for dimension in 0..dimensions {
        let mut place = simplex[0].0.clone();
        place[dimension] += step;
        simplex.push(measure(place, cost));
    }
    for _ in 0..150 * dimensions {
        simplex.sort_by(|one, other| one.1.total_cmp(&other.1));
        let (best, worst) = (simplex[0].1, simplex[dimensions].1);
        if worst - best <= 1e-12 * (best + 1e-12) {
            break;
        }
        improve(&mut simplex, cost);
    }
    simplex.into_iter().min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or_default()
}

/// A step: the worst corner is mirrored, stretched, drawn in, or all are drawn towards the best.
fn improve(simplex: &mut [Point], cost: &mut impl FnMut(&[f64]) -> f64) {
    let last = simplex.len() - 1;
    let middle = middle(&simplex[..last]);
    let worst = simplex[last].clone();
    let mut along = |factor: f64| {
        let place = middle.iter().zip(&worst.0).map(|(middle, worst)| middle + factor * (middle - worst));
        measure(place.collect(), cost)
    };
    let mirrored = along(1.0);
    let better = if mirrored.1 < simplex[0].1 {
        let stretched = along(2.0);
        if stretched.1 < mirrored.1 { stretched } else { mirrored }
    } else if mirrored.1 < simplex[last - 1].1 {
        mirrored
    } else {
        along(if mirrored.1 < worst.1 { 0.5 } else { -0.5 })
    };
    if better.1 < worst.1 {
        simplex[last] = better;
        return;
    }
    let best = simplex[0].0.clone();
    for corner in &mut simplex[1..] {
        let place = corner.0.iter().zip(&best).map(|(corner, best)| f64::midpoint(*corner, *best));
        *corner = measure(place.collect(), cost);
    }
}

fn middle(corners: &[Point]) -> Vec<f64> {
    let count = corners.len() as f64;
    let dimensions = corners[0].0.len();
    (0..dimensions).map(|at| corners.iter().map(|corner| corner.0[at]).sum::<f64>() / count).collect()
}

fn measure(place: Vec<f64>, cost: &mut impl FnMut(&[f64]) -> f64) -> Point {
    let cost = cost(&place);
    (place, cost)
}

// SPDX-License-Identifier: GPL-2.0-only
//! Means over independent runs, with their 90% confidence intervals by Student's t.

use serde::Serialize;

/// The 95% quantiles of Student's t for 1 to 30 degrees of freedom: what makes a two-sided interval of 90%.
const T_95: [f64; 30] = [
    6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125, 1.7959, 1.7823, 1.7709, 1.7613,
    1.7531, 1.7459, 1.7396, 1.7341, 1.7291, 1.7247, 1.7207, 1.7171, 1.7139, 1.7109, 1.7081, 1.7056, 1.7033, 1.7011,
    1.6991, 1.6973,
];
/// The same quantile of the normal distribution.
const Z_95: f64 = 1.644_853_626_951_472_2;

/// The 95% quantile of Student's t. Beyond the table it is the first two terms of the expansion in 1 / `freedom`, which
/// are right to 4 digits there. Without any freedom it is infinite.
pub fn student_t_95(freedom: usize) -> f64 {
    match freedom {
        0 => f64::INFINITY,
        n if n <= T_95.len() => T_95[n - 1],
        n => {
            let (z, n) = (Z_95, n as f64);
            z + (z.powi(3) + z) / (4.0 * n) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
        }
    }
}

/// A mean of independent runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean, in the unit of what was measured.
    pub mean: f64,
    /// Half the width of its 90% confidence interval, in the same unit; none of a single run.
    pub ci90: Option<f64>,
}

impl From<f64> for Estimate {
    /// What is computed, or ran once: it has no interval.
    fn from(mean: f64) -> Estimate {
        Estimate { mean, ci90: None }
    }
}

impl Estimate {
    /// Of `values`, of which there must be one at least.
    pub fn of(values: &[f64]) -> Estimate {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() < 2 {
            return Estimate { mean, ci90: None };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Estimate { mean, ci90: Some(student_t_95(values.len() - 1) * (variance / n).sqrt()) }
    }

    /// Whether `value` is within the interval.
    pub fn holds(&self, value: f64) -> bool {
        self.ci90.is_some_and(|ci90| (value - self.mean).abs() <= ci90)
    }

    /// As text: the mean, and the half width of the interval if there is one.
    pub fn text(&self, digits: usize) -> String {
        match self.ci90 {
            Some(ci90) => format!("{:.digits$} +- {ci90:.digits$}", self.mean),
            None => format!("{:.digits$}", self.mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_known_sample() {
        // 10, 12, 14: mean 12, s = 2, t(2) = 2.92.
        let estimate = Estimate::of(&[10.0, 12.0, 14.0]);
        assert_eq!(estimate.mean, 12.0);
        assert!((estimate.ci90.unwrap() - 2.92 * 2.0 / 3f64.sqrt()).abs() < 1e-12);
        assert!(estimate.holds(15.0) && !estimate.holds(16.0));
        assert_eq!(Estimate::of(&[7.0]), Estimate { mean: 7.0, ci90: None });
    }

    #[test]
    fn beyond_the_table_the_quantile_goes_on() {
        // 40, 60, 120 as tables have them.
        for (freedom, wanted) in [(31, 1.6955), (40, 1.6839), (60, 1.6706), (120, 1.6577), (1_000_000, 1.6449)] {
            assert!((student_t_95(freedom) - wanted).abs() < 1e-4, "{freedom}");
        }
        assert_eq!(student_t_95(0), f64::INFINITY);
    }
}

// SPDX-License-Identifier: GPL-2.0-only
//! Positive numbers of any size: a mantissa and an exponent of 2, which is a logarithm that loses nothing.
//!
//! The probabilities of a million nodes reach from 1 down to 10^-5,000,000. Sums of logarithms in floating point would
//! lose six digits on the way there; products of mantissas lose one part in 2^53 each, and the exponents are exact.

/// `mantissa` 2^`exponent`, the mantissa being 0 or at least 1 and below 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    mantissa: f64,
    exponent: i64,
}

/// log10(2) in 1 / 2^96.
const LOG10_2: i128 = 23_850_053_418_134_191_015_272_426_710;

impl Scaled {
    /// Nothing.
    pub const ZERO: Scaled = Scaled { mantissa: 0.0, exponent: 0 };
    /// One.
    pub const ONE: Scaled = Scaled { mantissa: 1.0, exponent: 0 };

    /// `value`, which must be 0 or a normal positive number.
    pub fn new(value: f64) -> Scaled {
        Scaled { mantissa: value, exponent: 0 }.normal()
    }

    fn normal(self) -> Scaled {
        if self.mantissa == 0.0 {
            return Scaled::ZERO;
        }
        let shift = (self.mantissa.to_bits() >> 52) as i64 - 1023;
        Scaled { mantissa: self.mantissa * power_of_2(-shift), exponent: self.exponent + shift }
    }

    /// The product with a normal positive number, or 0.
    pub fn times(self, factor: f64) -> Scaled {
        Scaled { mantissa: self.mantissa * factor, ..self }.normal()
    }

    /// The quotient of the two.
    pub fn over(self, divisor: Scaled) -> Scaled {
        let mantissa = self.mantissa / divisor.mantissa;
        Scaled { mantissa, exponent: self.exponent - divisor.exponent }.normal()
    }

    /// The sum.
    pub fn plus(self, other: Scaled) -> Scaled {
        let (large, small) = if self.is_above(&other) { (self, other) } else { (other, self) };
        let distance = large.exponent - small.exponent;
        if small.mantissa == 0.0 || distance > 1000 {
            return large;
        }
        Scaled { mantissa: large.mantissa + small.mantissa * power_of_2(-distance), ..large }.normal()
    }

    fn is_above(&self, other: &Scaled) -> bool {
        other.mantissa == 0.0 || (self.mantissa != 0.0 && self.exponent >= other.exponent)
    }

    /// As a floating-point number; what is too small for one is 0.
    pub fn value(self) -> f64 {
        match self.exponent {
            -1022..=1023 => self.mantissa * power_of_2(self.exponent),
            1024.. => f64::INFINITY,
            _ => 0.0,
        }
    }

    /// In decimal, with 17 digits and as many of the exponent as it takes: 1.2345678901234567e-81234.
    pub fn text(self) -> String {
        if self.mantissa == 0.0 {
            return "0".into();
        }
        if (-1022..=1023).contains(&self.exponent) {
            return format!("{:e}", self.value());
        }
        let log = LOG10_2 * i128::from(self.exponent);
        let (mut power, rest) = (log >> 96, log & ((1 << 96) - 1));
        // What is left of the exponent is below one decimal digit.
        let mut digits = self.mantissa * 10f64.powf(rest as f64 / (1u128 << 96) as f64);
        if digits >= 10.0 {
            (digits, power) = (digits / 10.0, power + 1);
        }
        format!("{digits:.16}e{power}")
    }
}

fn power_of_2(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [1.0, 0.1, 3.5e-300, 2.25e300, 1e-9] {
            assert_eq!(Scaled::new(value).value(), value);
        }
        assert_eq!(Scaled::ONE.plus(Scaled::new(0.25)).value(), 1.25);
        assert_eq!(Scaled::new(3.0).over(Scaled::new(4.0)).value(), 0.75);
        assert_eq!(Scaled::ZERO.plus(Scaled::ONE), Scaled::ONE);
    }

    #[test]
    fn what_no_float_holds_has_its_decimal() {
        // 2^-2000 and 2^-1000000.
        let small = (0..2000).fold(Scaled::ONE, |x, _| x.times(0.5));
        assert!(small.text().starts_with("8.7098098162172") && small.text().ends_with("e-603"), "{}", small.text());
        let small = (0..1_000_000).fold(Scaled::ONE, |x, _| x.times(0.5));
        assert!(small.text().starts_with("1.0100340591980") && small.text().ends_with("e-301030"), "{}", small.text());
        assert_eq!(small.value(), 0.0);
    }
}

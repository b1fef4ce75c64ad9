//! Groups of four `f64` in one AVX2 register, or in an array where the CPU has none: every lane gets the bits of scalar arithmetic.
//! Written with intrinsics, because LLVM does not keep arrays of four in one register.

use std::ops::{Add, Div, Mul, Sub};

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;

/// Numbers per group.
pub(crate) const LANES: usize = 4;

/// A number, or a group of numbers with lane-wise arithmetic.
pub(crate) trait Number: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    /// Returns `value`, in every lane.
    fn splat(self, value: f64) -> Self;
    /// Returns the square root.
    fn sqrt(self) -> Self;
    /// Returns `value` where this is NaN.
    fn or(self, value: f64) -> Self;
}

/// A group of four numbers.
pub(crate) trait Group: Number {
    /// Returns the lower number of each lane; that of `self` if `other` is NaN.
    fn lower(self, other: Self) -> Self;
    /// Returns the higher number of each lane; that of `self` if `other` is NaN.
    fn higher(self, other: Self) -> Self;
    /// Returns the lowest number; none is NaN.
    fn horizontal_min(self) -> f64;
    /// Returns the highest number; none is NaN.
    fn horizontal_max(self) -> f64;
    /// Returns the group with -inf in the lanes from `count` on.
    fn first(self, count: usize) -> Self;
    /// Returns the mask of the lanes that are equal to `value`.
    fn equal(self, value: f64) -> u64;
    /// Returns the numbers.
    fn to_array(self) -> [f64; LANES];
}

/// How groups are computed. A value of the type proves that the CPU can.
pub(crate) trait Lanes: Copy {
    /// The type of groups.
    type Group: Group;
    /// Returns `value` in every lane.
    fn splat(self, value: f64) -> Self::Group;
    /// Loads four numbers.
    fn load(self, numbers: &[f64; LANES]) -> Self::Group;
    /// Converts four integers below 2^31: the signed conversion is one instruction.
    fn convert(self, integers: &[u32; LANES]) -> Self::Group;
    /// Converts four numbers.
    fn widen(self, numbers: &[f32; LANES]) -> Self::Group;
}

impl Number for f64 {
    #[inline(always)]
    fn splat(self, value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn or(self, value: f64) -> Self {
        if self.is_nan() {
            value
        } else {
            self
        }
    }
}

/// Groups in arrays, for every CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

/// A group in an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array([f64; LANES]);

impl Array {
    #[inline(always)]
    fn with(mut self, other: Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        for (one, two) in self.0.iter_mut().zip(other.0) {
            *one = combine(*one, two);
        }
        self
    }
}

impl Lanes for Portable {
    type Group = Array;

    #[inline(always)]
    fn splat(self, value: f64) -> Array {
        Array([value; LANES])
    }

    #[inline(always)]
    fn load(self, numbers: &[f64; LANES]) -> Array {
        Array(*numbers)
    }

    #[inline(always)]
    fn convert(self, integers: &[u32; LANES]) -> Array {
        Array(integers.map(|integer| f64::from(integer as i32)))
    }

    #[inline(always)]
    fn widen(self, numbers: &[f32; LANES]) -> Array {
        Array(numbers.map(f64::from))
    }
}

macro_rules! lane_wise {
    ($($operator:ident $function:ident)*) => {
        $(impl $operator for Array {
            type Output = Self;

            #[inline(always)]
            fn $function(self, other: Self) -> Self {
                self.with(other, f64::$function)
            }
        })*
    };
}

lane_wise!(Add add Sub sub Mul mul Div div);

impl Number for Array {
    #[inline(always)]
    fn splat(self, value: f64) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.map(f64::sqrt))
    }

    #[inline(always)]
    fn or(self, value: f64) -> Self {
        Self(self.0.map(|number| number.or(value)))
    }
}

impl Group for Array {
    #[inline(always)]
    fn lower(self, other: Self) -> Self {
        self.with(other, |one, two| if two < one { two } else { one })
    }

    #[inline(always)]
    fn higher(self, other: Self) -> Self {
        self.with(other, |one, two| if two > one { two } else { one })
    }

    #[inline(always)]
    fn horizontal_min(self) -> f64 {
        self.0.into_iter().fold(f64::INFINITY, |least, number| if number < least { number } else { least })
    }

    #[inline(always)]
    fn horizontal_max(self) -> f64 {
        self.0.into_iter().fold(f64::NEG_INFINITY, |most, number| if number > most { number } else { most })
    }

    #[inline(always)]
    fn first(mut self, count: usize) -> Self {
        for (lane, number) in self.0.iter_mut().enumerate() {
            *number = if lane < count { *number } else { f64::NEG_INFINITY };
        }
        self
    }

    #[inline(always)]
    fn equal(self, value: f64) -> u64 {
        self.0.into_iter().enumerate().fold(0, |bits, (lane, number)| bits | u64::from(number == value) << lane)
    }

    #[inline(always)]
    fn to_array(self) -> [f64; LANES] {
        self.0
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #![expect(unsafe_code, reason = "AVX2 intrinsics; a value of `Avx2` proves that the CPU has them")]

    use std::arch::x86_64::*;
    use std::ops::{Add, Div, Mul, Sub};

    use super::{Group, Lanes, Number, LANES};

    /// Groups in AVX2 registers. Its functions are inlined where AVX2 is enabled, and slow elsewhere.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Avx2(());

    impl Avx2 {
        /// # Safety
        /// The CPU must support AVX2.
        #[inline(always)]
        pub(crate) unsafe fn new() -> Self {
            Self(())
        }
    }

    /// A group in an AVX2 register. Only `Avx2` makes the first one.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Register(__m256d);

    impl Lanes for Avx2 {
        type Group = Register;

        #[inline(always)]
        fn splat(self, value: f64) -> Register {
            // SAFETY: `self` proves AVX2.
            Register(unsafe { _mm256_set1_pd(value) })
        }

        #[inline(always)]
        fn load(self, numbers: &[f64; LANES]) -> Register {
            // SAFETY: `self` proves AVX2; the array has four numbers.
            Register(unsafe { _mm256_loadu_pd(numbers.as_ptr()) })
        }

        #[inline(always)]
        fn convert(self, integers: &[u32; LANES]) -> Register {
            // SAFETY: `self` proves AVX2; the array has four integers.
            Register(unsafe { _mm256_cvtepi32_pd(_mm_loadu_si128(integers.as_ptr().cast())) })
        }

        #[inline(always)]
        fn widen(self, numbers: &[f32; LANES]) -> Register {
            // SAFETY: `self` proves AVX2; the array has four numbers.
            Register(unsafe { _mm256_cvtps_pd(_mm_loadu_ps(numbers.as_ptr())) })
        }
    }

    macro_rules! lane_wise {
        ($($operator:ident $function:ident $intrinsic:ident)*) => {
            $(impl $operator for Register {
                type Output = Self;

                #[inline(always)]
                fn $function(self, other: Self) -> Self {
                    // SAFETY: a register proves AVX2.
                    Self(unsafe { $intrinsic(self.0, other.0) })
                }
            })*
        };
    }

    lane_wise!(Add add _mm256_add_pd Sub sub _mm256_sub_pd Mul mul _mm256_mul_pd Div div _mm256_div_pd);

    impl Number for Register {
        #[inline(always)]
        fn splat(self, value: f64) -> Self {
            // SAFETY: a register proves AVX2.
            Self(unsafe { _mm256_set1_pd(value) })
        }

        #[inline(always)]
        fn sqrt(self) -> Self {
            // SAFETY: a register proves AVX2.
            Self(unsafe { _mm256_sqrt_pd(self.0) })
        }

        #[inline(always)]
        fn or(self, value: f64) -> Self {
            // SAFETY: a register proves AVX2.
            Self(unsafe { _mm256_blendv_pd(self.0, _mm256_set1_pd(value), _mm256_cmp_pd::<_CMP_UNORD_Q>(self.0, self.0)) })
        }
    }

    impl Group for Register {
        #[inline(always)]
        fn lower(self, other: Self) -> Self {
            // SAFETY: a register proves AVX2. The second operand is the result unless the first is less.
            Self(unsafe { _mm256_min_pd(other.0, self.0) })
        }

        #[inline(always)]
        fn higher(self, other: Self) -> Self {
            // SAFETY: a register proves AVX2. The second operand is the result unless the first is greater.
            Self(unsafe { _mm256_max_pd(other.0, self.0) })
        }

        #[inline(always)]
        fn horizontal_min(self) -> f64 {
            // SAFETY: a register proves AVX2.
            unsafe {
                let halves = _mm_min_pd(_mm256_castpd256_pd128(self.0), _mm256_extractf128_pd::<1>(self.0));
                _mm_cvtsd_f64(_mm_min_sd(halves, _mm_unpackhi_pd(halves, halves)))
            }
        }

        #[inline(always)]
        fn horizontal_max(self) -> f64 {
            // SAFETY: a register proves AVX2.
            unsafe {
                let halves = _mm_max_pd(_mm256_castpd256_pd128(self.0), _mm256_extractf128_pd::<1>(self.0));
                _mm_cvtsd_f64(_mm_max_sd(halves, _mm_unpackhi_pd(halves, halves)))
            }
        }

        #[inline(always)]
        fn first(self, count: usize) -> Self {
            // SAFETY: a register proves AVX2.
            unsafe {
                let mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3));
                Self(_mm256_blendv_pd(_mm256_set1_pd(f64::NEG_INFINITY), self.0, _mm256_castsi256_pd(mask)))
            }
        }

        #[inline(always)]
        fn equal(self, value: f64) -> u64 {
            // SAFETY: a register proves AVX2.
            unsafe { u64::from(_mm256_movemask_pd(_mm256_cmp_pd::<_CMP_EQ_OQ>(self.0, _mm256_set1_pd(value))) as u32) }
        }

        #[inline(always)]
        fn to_array(self) -> [f64; LANES] {
            let mut numbers = [0.0; LANES];
            // SAFETY: a register proves AVX2; the array has room for four numbers.
            unsafe { _mm256_storeu_pd(numbers.as_mut_ptr(), self.0) };
            numbers
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [[f64; LANES]; 4] =
        [[0.25, -3.5, f64::NAN, 7.0], [7.0, 7.0, 2.0, 0.1], [1e-3, 0.0, -0.0, 5e7], [f64::NEG_INFINITY, 1.0, 3.0, 2.0]];

    fn bits(group: impl Group) -> [u64; LANES] {
        group.to_array().map(f64::to_bits)
    }

    /// Computes with every function, without NaN where the contract excludes it.
    fn computed(lanes: impl Lanes) -> Vec<u64> {
        let mut found = Vec::new();
        for one in &NUMBERS {
            let a = lanes.load(one);
            for two in &NUMBERS {
                let b = lanes.load(two);
                for group in [a + b, a - b, a * b, a / b, a.or(0.5).lower(b), a.or(0.5).higher(b)] {
                    found.extend(bits(group.or(0.125)));
                }
            }
            let a = a.or(-2.0);
            found.extend([a.horizontal_min().to_bits(), a.horizontal_max().to_bits()]);
            (0..=LANES).for_each(|count| found.extend(bits(a.first(count))));
            found.extend([a.equal(7.0), a.equal(-2.0), a.equal(9.0)]);
            found.extend(bits(a.higher(lanes.splat(0.0)).sqrt()));
            found.extend(bits(a.splat(4.0)));
        }
        found.extend(bits(lanes.convert(&[0, 1, 77, (1 << 31) - 1])));
        found.extend(bits(lanes.widen(&[0.1, -2.5, 3.0, f32::INFINITY])));
        found
    }

    #[test]
    fn group_arithmetic_equals_scalar_arithmetic() {
        let (a, b) = (Portable.load(&NUMBERS[1]), Portable.load(&NUMBERS[2]));
        for (lane, (one, two)) in NUMBERS[1].into_iter().zip(NUMBERS[2]).enumerate() {
            assert_eq!((a / b).to_array()[lane].to_bits(), (one / two).to_bits());
            assert_eq!((a - b).sqrt().or(0.5).to_array()[lane].to_bits(), (one - two).sqrt().or(0.5).to_bits());
        }
        assert_eq!(a.equal(7.0), 0b11);
        assert_eq!(a.first(3).to_array(), [7.0, 7.0, 2.0, f64::NEG_INFINITY]);
        assert_eq!((a.horizontal_min(), a.horizontal_max()), (0.1, 7.0));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn registers_equal_arrays() {
        if crate::runtime::simd::is_available() {
            #[expect(unsafe_code, reason = "the CPU has AVX2")]
            // SAFETY: the CPU supports AVX2.
            let lanes = unsafe { Avx2::new() };
            assert_eq!(computed(lanes), computed(Portable));
        }
    }
}

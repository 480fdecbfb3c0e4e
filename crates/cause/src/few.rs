//! A list that mostly has at most one item: then it takes no memory of its own.

use std::fmt;
use std::ops::{Deref, DerefMut};

#[derive(Clone)]
pub struct Few<T>(List<T>);

#[derive(Clone)]
enum List<T> {
    None,
    One(T),
    #[expect(
        clippy::box_collection,
        reason = "a list of one item would otherwise take as much memory as a vector"
    )]
    Many(Box<Vec<T>>),
}

impl<T> Few<T> {
    pub fn one(item: T) -> Self {
        Self(List::One(item))
    }

    #[inline]
    pub fn push(&mut self, item: T) {
        match &mut self.0 {
            List::None => self.0 = List::One(item),
            List::Many(all) => all.push(item),
            List::One(_) => {
                if let List::One(first) = std::mem::replace(&mut self.0, List::None) {
                    self.0 = List::Many(Box::new(vec![first, item]));
                }
            }
        }
    }

    pub fn retain(&mut self, mut wanted: impl FnMut(&T) -> bool) {
        match &mut self.0 {
            List::None => {}
            List::One(item) if wanted(item) => {}
            List::One(_) => self.0 = List::None,
            List::Many(all) => all.retain(wanted),
        }
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(List::None)
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            List::None => &[],
            List::One(item) => std::slice::from_ref(item),
            List::Many(all) => all,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            List::None => &mut [],
            List::One(item) => std::slice::from_mut(item),
            List::Many(all) => all,
        }
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut all = Self::default();
        all.extend(items);
        all
    }
}

impl<'f, T> IntoIterator for &'f Few<T> {
    type Item = &'f T;
    type IntoIter = std::slice::Iter<'f, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'f, T> IntoIterator for &'f mut Few<T> {
    type Item = &'f mut T;
    type IntoIter = std::slice::IterMut<'f, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: PartialEq> PartialEq for Few<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Few<T> {}

impl<T: fmt::Debug> fmt::Debug for Few<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_behaves_like_a_vector() {
        for count in 0..5 {
            let mut few: Few<i32> = (0..count).collect();
            let mut all: Vec<i32> = (0..count).collect();
            assert_eq!(*few, *all);
            few.retain(|item| item % 2 == 0);
            all.retain(|item| item % 2 == 0);
            assert_eq!(*few, *all);
            few.push(7);
            all.push(7);
            few.iter_mut().for_each(|item| *item += 1);
            all.iter_mut().for_each(|item| *item += 1);
            assert_eq!(*few, *all);
            assert_eq!(few, all.into_iter().collect());
        }
    }
}

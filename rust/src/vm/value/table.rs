//! The elements of a set and the entries of a dict, in the order of insertion, found by Python's equality.
//!
//! Most tables of a model are small, so they are searched one by one. A large one has an index of hashes.

use super::Value;
use super::compare::{equal_inside, hash, require_hashable};
use crate::vm::Answer;
use hashbrown::HashTable;

/// Tables up to this size have no index.
const SMALL: usize = 8;

#[derive(Default, Clone)]
pub struct Table {
    keys: Vec<Value>,
    index: Option<HashTable<u32>>,
    /// Counts the keys that came or went: an iteration notices a change.
    version: u32,
}

impl Table {
    pub fn with_capacity(capacity: usize) -> Table {
        Table { keys: Vec::with_capacity(capacity), index: None, version: 0 }
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn keys(&self) -> &[Value] {
        &self.keys
    }

    pub fn version(&self) -> u32 {
        self.version
    }

    /// The place of a key.
    pub fn find(&self, key: &Value) -> Answer<Option<usize>> {
        require_hashable(key)?;
        self.find_hashable(key)
    }

    fn find_hashable(&self, key: &Value) -> Answer<Option<usize>> {
        let Some(index) = &self.index else {
            for (place, known) in self.keys.iter().enumerate() {
                if equal_inside(known, key)? {
                    return Ok(Some(place));
                }
            }
            return Ok(None);
        };
        let mut failed = None;
        let found = index.find(hash(key)?, |&place| {
            equal_inside(&self.keys[place as usize], key).unwrap_or_else(|bail| {
                failed = Some(bail);
                true
            })
        });
        failed.map_or(Ok(found.map(|&place| place as usize)), Err)
    }

    pub fn contains(&self, key: &Value) -> Answer<bool> {
        Ok(self.find(key)?.is_some())
    }

    /// Add a key unless an equal one is there. Returns its place, and whether it is new.
    pub fn add(&mut self, key: Value) -> Answer<(usize, bool)> {
        if let Some(place) = self.find(&key)? {
            return Ok((place, false));
        }
        let place = self.keys.len();
        if let Some(index) = &mut self.index {
            let hashed = hash(&key)?;
            let keys = &self.keys;
            index.insert_unique(hashed, place as u32, |&i| hash(&keys[i as usize]).unwrap_or_default());
        }
        self.keys.push(key);
        self.version = self.version.wrapping_add(1);
        if self.index.is_none() && self.keys.len() > SMALL {
            self.build_index()?;
        }
        Ok((place, true))
    }

    pub fn remove_at(&mut self, place: usize) -> Value {
        let key = self.keys.remove(place);
        self.version = self.version.wrapping_add(1);
        if self.index.take().is_some() && self.keys.len() > SMALL {
            // The keys had hashes before, so they have them now.
            self.build_index().ok();
        }
        key
    }

    pub fn clear(&mut self) {
        if !self.keys.is_empty() {
            *self = Table { version: self.version.wrapping_add(1), ..Table::default() };
        }
    }

    fn build_index(&mut self) -> Answer<()> {
        let mut index = HashTable::with_capacity(self.keys.len() * 2);
        for (place, key) in self.keys.iter().enumerate() {
            index.insert_unique(hash(key)?, place as u32, |&i| hash(&self.keys[i as usize]).unwrap_or_default());
        }
        self.index = Some(index);
        Ok(())
    }
}

/// The entries of a dict.
#[derive(Default, Clone)]
pub struct Map {
    table: Table,
    values: Vec<Value>,
}

impl Map {
    pub fn with_capacity(capacity: usize) -> Map {
        Map { table: Table::with_capacity(capacity), values: Vec::with_capacity(capacity) }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    pub fn keys(&self) -> &[Value] {
        self.table.keys()
    }

    pub fn values(&self) -> &[Value] {
        &self.values
    }

    pub fn get(&self, key: &Value) -> Answer<Option<&Value>> {
        Ok(self.table.find(key)?.map(|place| &self.values[place]))
    }

    /// Set the value of a key. A key that is there stays, as in Python.
    pub fn set(&mut self, key: Value, value: Value) -> Answer<()> {
        let (place, new) = self.table.add(key)?;
        if new {
            self.values.push(value);
        } else {
            self.values[place] = value;
        }
        Ok(())
    }

    pub fn remove(&mut self, key: &Value) -> Answer<Option<Value>> {
        Ok(self.table.find(key)?.map(|place| self.remove_at(place).1))
    }

    pub fn remove_at(&mut self, place: usize) -> (Value, Value) {
        (self.table.remove_at(place), self.values.remove(place))
    }

    pub fn clear(&mut self) {
        self.table.clear();
        self.values.clear();
    }

    /// Move the entry at a place to the end, or to the beginning.
    pub fn move_to_end(&mut self, place: usize, last: bool) -> Answer<()> {
        let mut entries: Vec<(Value, Value)> =
            std::mem::take(&mut self.table.keys).into_iter().zip(std::mem::take(&mut self.values)).collect();
        let entry = entries.remove(place);
        entries.insert(if last { entries.len() } else { 0 }, entry);
        self.table = Table { version: self.table.version.wrapping_add(1), ..Table::with_capacity(entries.len()) };
        let version = self.table.version;
        entries.into_iter().try_for_each(|(key, value)| self.set(key, value))?;
        self.table.version = version;
        Ok(())
    }
}

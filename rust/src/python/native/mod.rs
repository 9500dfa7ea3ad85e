//! A model that the virtual machine answers: `model` asks it first, and Python too about a `sample` of the questions.
//! `shape`, `guards` and `views` are what it needs for that.

mod guards;
pub mod model;
mod sample;
pub mod shape;
mod views;

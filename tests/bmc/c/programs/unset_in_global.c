// A global variable gets a copy of a struct that is set in part, and the missing field is read there.
// verdict: true
// violated: memory
struct pair {
  int x, y;
} kept;
int main(void) {
  struct pair made;
  made.x = 1;
  kept = made;
  return kept.y == 2;
}

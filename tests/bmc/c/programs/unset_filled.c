// Loops that look as if they filled an array: they are left early, skip an element, or read before they write.
// verdict: true
// violated: memory
int left(int stop) {
  int a[3];
  for (int i = 0; i < 3; i++) {
    if (i == stop)
      break;
    a[i] = i;
  }
  return a[2];
}
int skipped(int odd) {
  int a[3];
  for (int i = 0; i < 3; i++)
    if (i != odd)
      a[i] = i;
  return a[1];
}
int before(void) {
  int a[3];
  for (int i = 0; i < 3; i++)
    a[i] = i > 0 ? a[i - 1] : a[2];
  return a[0];
}
int short_of_one(void) {
  int a[3];
  for (int i = 0; i < 2; i++)
    a[i] = i;
  return a[2];
}
int main(void) { return left(1) + skipped(1) + before() + short_of_one(); }

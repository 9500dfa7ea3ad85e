// verdict: true
// options: overflow=true
int main(void) {
  unsigned top = 1u;
  top++;
  top = top << 31;
  int by = 29;
  by++;
  long wide = 1L << 62;
  return (1 << by) + (-8 >> 1) + (wide > 0);
}

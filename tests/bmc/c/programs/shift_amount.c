// verdict: true
// violated: overflow
// options: overflow=true
int main(void) {
  int by = 31;
  by++;
  return 1 >> by;
}

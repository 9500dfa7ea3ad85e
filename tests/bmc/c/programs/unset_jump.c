// A jump into a switch leads over the declarations: neither the number nor the array is set.
// verdict: true
// violated: memory
int dispatch(int c) {
  switch (c) {
    int x = 1;
    int a[2];
  case 0:
    a[0] = 3;
    return x;
  default:
    return a[0];
  }
}
int main(void) { return dispatch(0) + dispatch(1); }

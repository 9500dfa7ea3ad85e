// verdict: true
// violated: overflow
// options: overflow=true
int main(void) {
  int one = 1, by = 31;
  by--;
  by++;
  int top = one << by;
  return top == 5;
}

// The array of the second round is a new one: it does not have the values of the first.
// verdict: true
// violated: memory
int main(void) {
  int total = 0;
  for (int round = 0; round < 2; round++) {
    int mark[2];
    if (round == 0)
      mark[0] = mark[1] = 1;
    total += mark[0] + mark[1];
  }
  return total;
}

// The last element of a local array is not set: the loop ends too early.
// verdict: true
// violated: memory
int main(void) {
  int squares[4], total = 0;
  for (int i = 0; i < 3; i++)
    squares[i] = i * i;
  for (int i = 0; i < 4; i++)
    total += squares[i];
  return total;
}

// All kinds of atomic operations, one after the other.
// verdict: true
#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
_Atomic unsigned char small = 250;
int plain = 5;
atomic_flag flag = ATOMIC_FLAG_INIT;
int main(void) {
  assert(atomic_fetch_add(&small, 10) == 250);
  assert(small == 4);
  small -= 5;
  assert(small == 255);
  assert(++small == 0);
  assert(small++ == 0 && small == 1);
  assert(__atomic_fetch_or(&plain, 8, __ATOMIC_SEQ_CST) == 5);
  assert(__atomic_and_fetch(&plain, 12, __ATOMIC_RELAXED) == 12);
  assert(__sync_fetch_and_xor(&plain, 4) == 12);
  assert(__atomic_load_n(&plain, __ATOMIC_ACQUIRE) == 8);
  assert(__sync_val_compare_and_swap(&plain, 1, 2) == 8);
  assert(__sync_lock_test_and_set(&plain, 3) == 8);
  int expected = 4;
  assert(!__atomic_compare_exchange_n(&plain, &expected, 9, 0, 5, 5));
  assert(expected == 3);
  assert(__atomic_compare_exchange_n(&plain, &expected, 9, 0, 5, 5));
  __atomic_store_n(&plain, 1, __ATOMIC_RELEASE);
  assert(atomic_exchange_explicit(&small, 77, memory_order_relaxed) == 1);
  assert(!atomic_flag_test_and_set(&flag));
  assert(atomic_flag_test_and_set(&flag));
  atomic_flag_clear(&flag);
  assert(!atomic_flag_test_and_set(&flag));
  assert(__atomic_fetch_nand(&plain, 3, 5) == 1 && plain == -2);
  __sync_synchronize();
  return 0;
}

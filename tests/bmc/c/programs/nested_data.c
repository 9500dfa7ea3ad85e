// Structs in arrays in structs, pointers to parts of them, and a whole struct as argument and result.
// verdict: true
#include <assert.h>
#include <pthread.h>
struct point {
  short x, y;
};
struct shape {
  struct point corners[2];
  pthread_mutex_t lock;
  int grid[2][3];
};
struct shape shapes[2] = {{.corners = {{1, 2}, {3, 4}}, .grid = {{1, 2, 3}, {4}}}};
static struct point swapped(struct point p) {
  struct point q = {.y = p.x, .x = p.y};
  return q;
}
static void move(struct shape *s, int corner, int by) {
  struct point *p = &s->corners[corner];
  pthread_mutex_lock(&s->lock);
  p->x += by;
  (*p).y -= by;
  pthread_mutex_unlock(&s->lock);
}
void *worker(void *arg) {
  struct shape *s = arg;
  for (int i = 0; i < 2; i++)
    move(s, i, 10);
  return 0;
}
int main(void) {
  pthread_t a, b;
  struct point saved = shapes[0].corners[1];
  pthread_create(&a, 0, worker, &shapes[0]);
  pthread_create(&b, 0, worker, shapes);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(shapes[0].corners[0].x == 21 && shapes[0].corners[1].y == -16);
  shapes[1].corners[0] = swapped(saved);
  assert(shapes[1].corners[0].x == 4 && shapes[1].corners[0].y == 3);
  int *g = shapes[0].grid[1], sum = 0;
  for (int *q = &shapes[0].grid[0][0]; q < g; q++)
    sum += *q;
  assert(sum == 6 && g[0] == 4 && g - &shapes[0].grid[0][1] == 2);
  return 0;
}

#pragma once
extern int sched_yield(void);

/* The working set: pages that are filled, checked and filled anew, over and over. */
#pragma once
#include "hardware.h"

void memory_start(uint32_t first_free, uint32_t first_taken); /* addresses; may shrink settings.working_set */
void rewrite_page(void);  /* checks the next page in turn, then stamps it with a new generation */
void recheck_pages(uint32_t count); /* only checks, the next ones in turn */
uint32_t check_all(void); /* how many pages that is */
void corrupt_page(void);  /* so that a test can see that it would be noticed */

uint32_t memory_errors(void);
uint32_t memory_rewritten(void); /* in MiB */

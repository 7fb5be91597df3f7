/* A ring of bytes. 字节环。 */
#include <stddef.h>

#ifdef RING_DEBUG
#define TRACE(x) trace(x)
#else
#define TRACE(x)
#endif

struct ring {
    unsigned char *data;
    size_t size, head;
};

/*
   Takes one byte out.

   The ring must not be empty.
*/
static int
ring_take(struct ring *r)
{
    int value = r->data[r->head];
    TRACE(value);
    r->head = (r->head + 1) % r->size;
    return value;
}

int main(void)
{
    return 0;
}

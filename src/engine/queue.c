#include "engine/queue.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/wait.h"

#include <stdlib.h>

typedef struct Node {
    QueueItem item;
    size_t bytes;
    struct Node *next;
} Node;

struct Queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    Node *head, *tail;
    size_t bytes, max_bytes;
    bool closed;
};

Queue *queue_new(size_t max_bytes)
{
    Queue *queue = mem_zero(sizeof *queue);
    pthread_mutex_init(&queue->lock, NULL);
    wait_init(&queue->not_empty);
    wait_init(&queue->not_full);
    queue->max_bytes = max_bytes;
    return queue;
}

void queue_item_release(QueueItem *item)
{
    batch_free(item->batch);
    free(item->position);
    free(item->highest);
    free(item->lower);
    free(item->upper);
    free(item->set);
    free(item->ahead);
    free(item->log);
    free(item->held_back_by);
    parts_free(item->parts);
    *item = (QueueItem){0};
}

void queue_free(Queue *queue)
{
    if (queue == NULL) return;
    for (Node *node = queue->head; node != NULL;) {
        Node *next = node->next;
        queue_item_release(&node->item);
        free(node);
        node = next;
    }
    pthread_cond_destroy(&queue->not_empty);
    pthread_cond_destroy(&queue->not_full);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

bool queue_push(Queue *queue, QueueItem *item)
{
    Node *node = mem_zero(sizeof *node);
    node->item = *item;
    node->bytes = sizeof *node + (item->batch == NULL ? 0 : batch_footprint(item->batch));
    *item = (QueueItem){0};
    pthread_mutex_lock(&queue->lock);
    /* An item larger than the bound passes alone. */
    while (!queue->closed && queue->head != NULL && queue->bytes + node->bytes > queue->max_bytes)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    bool open = !queue->closed;
    if (open) {
        if (queue->tail == NULL)
            queue->head = node;
        else
            queue->tail->next = node;
        queue->tail = node;
        queue->bytes += node->bytes;
        pthread_cond_signal(&queue->not_empty);
    }
    pthread_mutex_unlock(&queue->lock);
    if (!open) {
        queue_item_release(&node->item);
        free(node);
    }
    return open;
}

int queue_pop(Queue *queue, QueueItem *item, int64_t wait_us)
{
    int64_t until_us = clock_mono_us() + wait_us;
    pthread_mutex_lock(&queue->lock);
    while (queue->head == NULL && !queue->closed && wait_until(&queue->not_empty, &queue->lock, until_us)) {
    }
    Node *node = queue->head;
    if (node != NULL) {
        queue->head = node->next;
        if (queue->head == NULL) queue->tail = NULL;
        queue->bytes -= node->bytes;
        pthread_cond_broadcast(&queue->not_full);
    }
    bool closed = queue->closed;
    pthread_mutex_unlock(&queue->lock);
    if (node == NULL) return closed ? -1 : 0;
    *item = node->item;
    free(node);
    return 1;
}

bool queue_pressed(Queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool pressed = queue->bytes > queue->max_bytes / 2;
    pthread_mutex_unlock(&queue->lock);
    return pressed;
}

void queue_close(Queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->not_empty);
    pthread_cond_broadcast(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
}

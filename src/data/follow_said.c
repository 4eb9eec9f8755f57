/*
 * follow_said.c: what a follower says of itself, one sentence of each kind, which the applier
 * replaces and figures read.
 */
#include <string.h>

#include "data/follow_private.h"

enum follow_news follow_say(struct follow *follow, char said[DATA_ERROR_MAX], const char *text)
{
    pthread_mutex_lock(&follow->lock);
    enum follow_news news = strcmp(said, text) == 0 ? FOLLOW_AS_BEFORE
                            : text[0] == '\0'       ? FOLLOW_OVER
                            : said[0] == '\0'       ? FOLLOW_BEGINS
                                                    : FOLLOW_OTHERWISE;

    memmove(said, text, strlen(text) + 1);
    pthread_mutex_unlock(&follow->lock);
    return news;
}

void follow_said(struct follow *follow, const char said[DATA_ERROR_MAX], char text[DATA_ERROR_MAX])
{
    pthread_mutex_lock(&follow->lock);
    memcpy(text, said, DATA_ERROR_MAX);
    pthread_mutex_unlock(&follow->lock);
}

void data_follow_trouble(struct data *data, char error[DATA_ERROR_MAX])
{
    follow_said(data->follow, data->follow->trouble, error);
}

void data_follow_grown(struct data *data, char error[DATA_ERROR_MAX])
{
    follow_said(data->follow, data->follow->grown, error);
}

void data_follow_unlike(struct data *data, char error[DATA_ERROR_MAX])
{
    follow_said(data->follow, data->follow->unlike, error);
}

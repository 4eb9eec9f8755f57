/*
 * admin_survey.h: the values of slots, and how far one has to look for records: a look that goes
 * round all spaces for as long as the daemon runs, so that what is told may be some minutes old, of
 * large spaces some hours.
 *
 * Cost: ADMIN_SURVEY_STEPS steps of less than half a millisecond a second, of this thread alone.
 * Thread rule: the admin's thread, outside the barrier.
 */
#ifndef ROLLCALL_ADMIN_ADMIN_SURVEY_H
#define ROLLCALL_ADMIN_ADMIN_SURVEY_H

#include "admin/admin_figures.h"

#define ADMIN_SURVEY_STEPS  16
#define ADMIN_SURVEY_REST_S 3 /* between two rounds */
/* The bits that are told would hold so many of the numbers beside a table. */
#define ADMIN_SURVEY_ENOUGH 0.99

struct admin_survey;

struct admin_survey *admin_survey_create(void);         /* never NULL */
void admin_survey_destroy(struct admin_survey *survey); /* NULL: no-op */

/* Once a second. */
void admin_survey_go_on(struct admin_survey *survey, const struct server *server,
                        struct barrier_member *member);
/* Sets slot_list and reach of each space that was looked at. */
void admin_survey_tell(const struct admin_survey *survey, struct admin_figures *figures);

#endif

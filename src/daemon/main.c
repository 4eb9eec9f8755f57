/* main.c: rollcalld. Everything is in daemon.c, which tests can link. */
#include "daemon/daemon.h"

int main(int argc, char **argv)
{
    return daemon_run(argc, argv);
}

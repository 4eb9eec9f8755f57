#include "tools/rollcall/online_screen.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define ROWS_DEFAULT    24
#define COLUMNS_DEFAULT 80
#define COLUMNS_MAX     (ONLINE_LINE_MAX - 1)

#define BEGIN   "\033[?1049h\033[?25l" /* a screen of its own, no cursor */
#define END     "\033[?25h\033[?1049l"
#define HOME    "\033[H"
#define REST    "\033[K" /* clear the rest of the line */
#define BELOW   "\033[J"
#define HEADING "\033[7m"
#define WRONG   "\033[1;31m"
#define NORMAL  "\033[0m"

static void screen_put(const char *text)
{
    fputs(text, stdout);
}

static sigset_t screen_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigaddset(&set, numbers[i]);
    }
    return set;
}

bool online_screen_begin(struct online_screen *screen)
{
    const sigset_t set = screen_signals();
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &screen->before) != 0) {
        return false;
    }
    raw = screen->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    sigprocmask(SIG_BLOCK, &set, NULL);
    screen->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (screen->signal_fd < 0 || tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) {
        return false;
    }
    screen_put(BEGIN);
    return true;
}

void online_screen_end(struct online_screen *screen)
{
    screen_put(END);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
    close(screen->signal_fd);
}

void online_screen_size(unsigned *rows, unsigned *columns)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;

    *rows = known && size.ws_row > 0 ? size.ws_row : ROWS_DEFAULT;
    *columns = known && size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT;
    *columns = *columns < COLUMNS_MAX ? *columns : COLUMNS_MAX;
}

/* Control characters never reach the terminal: keys of clients are shown. */
static void screen_put_line(const char *line, unsigned columns)
{
    screen_put(REST); /* before it: after a full line it would take its last letter */
    for (unsigned i = 0; i < columns && line[i] != '\0'; i++) {
        unsigned char letter = (unsigned char)line[i];

        putchar(letter < ' ' || letter >= 0x7f ? '?' : letter);
    }
}

void online_screen_draw(const struct online_lines *lines, unsigned rows, unsigned columns)
{
    bool colours = online_colours(STDOUT_FILENO);
    size_t count = lines->count < rows ? lines->count : rows;

    screen_put(HOME);
    for (size_t i = 0; i < count; i++) {
        const char *style = i == lines->heading ? HEADING : i == 0 && lines->wrong ? WRONG : NULL;

        screen_put(colours && style != NULL ? style : "");
        screen_put_line(lines->at[i], columns);
        screen_put(colours && style != NULL ? NORMAL : "");
        screen_put(i + 1 < count ? "\n" : "");
    }
    screen_put(BELOW);
    fflush(stdout);
}

char online_screen_key(const struct online_screen *screen, unsigned timeout_ms)
{
    struct pollfd fds[] = {{.fd = screen->signal_fd, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};
    struct signalfd_siginfo signal;
    char key = ONLINE_KEY_NONE;

    if (poll(fds, sizeof(fds) / sizeof(fds[0]), (int)timeout_ms) <= 0) {
        return ONLINE_KEY_NONE;
    }
    if (fds[0].revents != 0 && read(screen->signal_fd, &signal, sizeof(signal)) > 0) {
        return signal.ssi_signo == SIGWINCH ? ONLINE_KEY_NONE : ONLINE_KEY_END;
    }
    if (fds[1].revents != 0 && read(STDIN_FILENO, &key, 1) <= 0) {
        return ONLINE_KEY_END;
    }
    return key;
}

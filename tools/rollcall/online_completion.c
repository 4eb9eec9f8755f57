/*
 * online_completion.c: rollcall completion: scripts for shells. They know the verbs; the options of
 * one they take from its --help, so they never fall behind.
 */
#include <stdio.h>
#include <string.h>

#include "tools/rollcall/online.h"
#include "tools/rollcall/verb.h"

static void completion_bash(void)
{
    printf("# bash completion of rollcall: rollcall completion bash >"
           "/usr/share/bash-completion/completions/rollcall\n"
           "_rollcall() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} verb= word\n"
           "    local verbs='");
    for (size_t i = 0; i < verb_count; i++) {
        printf("%s%s", i > 0 ? " " : "", verbs[i].name);
    }
    printf("'\n"
           "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
           "        [[ -z $verb && \" $verbs \" == *\" $word \"* ]] && verb=$word\n"
           "    done\n"
           "    if [ -z \"$verb\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$verbs\" -- \"$cur\"))\n"
           "    elif [[ $cur == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$(rollcall \"$verb\" --help 2>/dev/null |\n"
           "            grep -oE -- '--[a-z][a-z-]*' | sort -u)\" -- \"$cur\"))\n"
           "    elif [ \"$verb\" = completion ]; then\n"
           "        COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\"))\n"
           "    elif [ \"$verb\" = conf ] && [ \"$word\" = conf ]; then\n"
           "        COMPREPLY=($(compgen -W 'diff' -- \"$cur\"))\n"
           "    else\n"
           "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _rollcall rollcall\n");
}

static void completion_zsh(void)
{
    printf("#compdef rollcall\n"
           "# zsh completion of rollcall: rollcall completion zsh >"
           "/usr/share/zsh/vendor-completions/_rollcall\n"
           "local -a verbs options\n"
           "verbs=(\n");
    for (size_t i = 0; i < verb_count; i++) {
        printf("    '%s:%s'\n", verbs[i].name, verbs[i].help);
    }
    printf(")\n"
           "if (( CURRENT == 2 )); then\n"
           "    _describe verb verbs\n"
           "elif [[ $words[CURRENT] == -* ]]; then\n"
           "    options=(${(f)\"$(rollcall $words[2] --help 2>/dev/null |\n"
           "        grep -oE -- '--[a-z][a-z-]*' | sort -u)\"})\n"
           "    compadd -a options\n"
           "elif [[ $words[2] == completion ]]; then\n"
           "    compadd bash zsh fish\n"
           "elif [[ $words[2] == conf ]] && (( CURRENT == 3 )); then\n"
           "    compadd diff\n"
           "else\n"
           "    _files\n"
           "fi\n");
}

static void completion_fish(void)
{
    printf("# fish completion of rollcall: rollcall completion fish >"
           "~/.config/fish/completions/rollcall.fish\n");
    for (size_t i = 0; i < verb_count; i++) {
        printf("complete -c rollcall -n __fish_use_subcommand -f -a %s -d '%s'\n", verbs[i].name,
               verbs[i].help);
    }
    printf(
        "complete -c rollcall -n '__fish_seen_subcommand_from completion' -f "
        "-a 'bash zsh fish'\n"
        "complete -c rollcall -n '__fish_seen_subcommand_from conf' -a diff\n"
        "complete -c rollcall -n 'not __fish_use_subcommand' -a '(rollcall (commandline -opc)[2] "
        "--help 2>/dev/null | string match -ar -- \"--[a-z][a-z-]*\" | sort -u)'\n");
}

static int completion_run(const struct online_options *options)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(options->words[0], shells[i].name) == 0) {
            shells[i].print();
            return EXIT_STATUS_DONE;
        }
    }
    return (int)verb_complain(stderr, "unknown shell \"%s\": bash, zsh or fish", options->words[0]);
}

static const char *const completion_takes[] = {NULL};

const struct online_verb verb_completion = {
    .name = "completion",
    .words = "bash|zsh|fish",
    .does = "Prints a script that has the shell complete verbs and options.",
    .examples = "  source <(rollcall completion bash)\n"
                "  rollcall completion fish >~/.config/fish/completions/rollcall.fish\n",
    .takes = completion_takes,
    .words_least = 1,
    .words_most = 1,
    .run = completion_run,
    .no_server = true,
};

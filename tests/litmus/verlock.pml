/*
 * verlock.pml: src/base/verlock.h as a model for spin: two writers and a reader whose processors carry
 * out their loads and stores in any order that the memory orders allow. tests/litmus/run.sh checks it
 * whole, and once without each of the orders, where spin has to find a history that goes wrong.
 *
 * Memory is one value a word, which all processors see alike (as on ARMv8, RISC-V and x86). An access
 * happens when its `do` branch runs; a branch waits only for those before it that an order, or the same
 * word, puts before it. The exchange has two parts, as with load- and store-exclusive: the word is
 * reserved when it is read, and its new value may be seen later.
 *
 * The orders of the header, in the order of the code, and the model's name of each (orders.py compares):
 *     verlock_read       load_n              acquire          ACQUIRE_LOAD
 *     verlock_read       load_n              acquire          ACQUIRE_LOAD
 *     verlock_unchanged  thread_fence        acquire          ACQUIRE_FENCE
 *     verlock_unchanged  load_n              relaxed          -
 *     verlock_try        compare_exchange_n  acquire relaxed  ACQUIRE_EXCHANGE
 *     verlock_try        thread_fence        release          RELEASE_FENCE
 *     verlock_release    store_n             release          RELEASE_STORE
 *
 * What must hold: a reader that finds the word unlocked and unchanged has read both words of data as
 * of that version; no change of a writer is lost.
 */
#define WRITERS 2
#define DATA    2

/* Each order is there unless spin is called with -DNO_... */
#ifdef NO_ACQUIRE_LOAD
#define AFTER_LOAD true
#else
#define AFTER_LOAD read_first
#endif
#ifdef NO_ACQUIRE_FENCE
#define AFTER_DATA true
#else
#define AFTER_DATA read_data[0] && read_data[1]
#endif
#ifdef NO_ACQUIRE_EXCHANGE
#define AFTER_EXCHANGE_LOAD true
#else
#define AFTER_EXCHANGE_LOAD taken
#endif
#ifdef NO_RELEASE_FENCE
#define AFTER_EXCHANGE taken
#else
#define AFTER_EXCHANGE locked
#endif
#ifdef NO_RELEASE_STORE
#define BEFORE_UNLOCK locked
#else
#define BEFORE_UNLOCK locked && stored[0] && stored[1]
#endif

byte word = 0; /* even: a version, unlocked; odd: locked */
bool reserved = false;
byte data[DATA] = 0; /* as often as the version was raised */
byte written = 0;

proctype writer()
{
    bool taken = false, locked = false, unlocked = false;
    bool loaded[DATA] = false, stored[DATA] = false;
    byte seen = 0, value[DATA] = 0;

    do
    :: atomic { !taken && word % 2 == 0 && !reserved -> seen = word; reserved = true; taken = true }
    :: atomic { taken && !locked -> word = seen + 1; locked = true }
    :: atomic { !loaded[0] && (AFTER_EXCHANGE_LOAD) -> value[0] = data[0]; loaded[0] = true }
    :: atomic { !loaded[1] && (AFTER_EXCHANGE_LOAD) -> value[1] = data[1]; loaded[1] = true }
    :: atomic { loaded[0] && !stored[0] && taken && (AFTER_EXCHANGE) ->
                data[0] = value[0] + 1; stored[0] = true }
    :: atomic { loaded[1] && !stored[1] && taken && (AFTER_EXCHANGE) ->
                data[1] = value[1] + 1; stored[1] = true }
    :: atomic { !unlocked && (BEFORE_UNLOCK) -> word = seen + 2; reserved = false; unlocked = true }
    :: unlocked && stored[0] && stored[1] -> break
    od;
    atomic {
        written++;
        if
        :: written == WRITERS -> assert(data[0] == WRITERS && data[1] == WRITERS)
        :: else
        fi
    }
}

proctype reader()
{
    bool read_first = false, read_data[DATA] = false, read_last = false;
    byte first = 0, last = 0, value[DATA] = 0;

    do
    :: atomic { !read_first && word % 2 == 0 -> first = word; read_first = true }
    :: atomic { !read_data[0] && (AFTER_LOAD) -> value[0] = data[0]; read_data[0] = true }
    :: atomic { !read_data[1] && (AFTER_LOAD) -> value[1] = data[1]; read_data[1] = true }
    :: atomic { read_first && !read_last && (AFTER_DATA) -> last = word; read_last = true }
    :: read_last && read_data[0] && read_data[1] -> break
    od;
    if
    :: first == last -> assert(value[0] == first / 2 && value[1] == first / 2)
    :: else
    fi
}

init {
    byte i;
    atomic {
        for (i : 1 .. WRITERS) {
            run writer();
        }
        run reader();
    }
}

// A program that loads the library like the CUDA driver does: program LIBRARY exit|copies|reads|fork|kill|segv|abort|term|overflow|run SECONDS [handles SIGNAL]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void handle(int signal) { (void)!write(1, "handled\n", 8); }
static int overflow(volatile int depth) { volatile char page[4096]; page[0] = depth; return overflow(depth + 1) + page[0]; }

static long long counted(const char *key) {
  char line[64];
  long long value = -1;
  FILE *counts = fopen("/proc/self/io", "r");
  while (counts && fgets(line, sizeof line, counts))
    if (!strncmp(line, key, strlen(key))) value = atoll(strchr(line, ' '));
  if (counts) fclose(counts);
  return value;
}

// Reads a file twice: from disk, as far as its file system has one, and from the page cache. Between pauses, so that the library
// sees each. Says what the kernel has counted.
static int read_file(const char *path) {
  static char block[1 << 20];
  usleep(300 * 1000);
  for (int again = 0; again < 2; again++) {
    int file = open(path, O_RDONLY);
    if (!again) fsync(file), posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    long long before = counted("read_bytes:");
    while (read(file, block, sizeof block) > 0) {}
    printf("%lld\n", counted("read_bytes:") - before);
    close(file);
    usleep(600 * 1000);
  }
  return 3;
}

int main(int count, char **words) {
  if (count > 5) signal(atoi(words[5]), handle);
  // The driver of the process, if the test has one.
  dlopen("libcuda.so.1", RTLD_NOW);
  void *library = dlopen(words[1], RTLD_NOW);
  int (*begin)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (!begin) return fprintf(stderr, "%s\n", dlerror()), 9;
  begin();
  if (!strcmp(words[2], "reads")) return read_file(words[3]);
  if (!strcmp(words[2], "run")) {
    struct timespec left = {atoi(words[3]), 0};
    while (nanosleep(&left, &left)) {}
    puts("done");
    return 3;
  }
  usleep(1200 * 1000);
  if (!strcmp(words[2], "copies")) ((void (*)(void))dlsym(dlopen("libcupti.so.13", RTLD_NOW), "play"))();
  if (!strcmp(words[2], "segv")) *(volatile int *)8 = 1;
  if (!strcmp(words[2], "abort")) abort();
  if (!strcmp(words[2], "term")) kill(getpid(), SIGTERM), pause();
  if (!strcmp(words[2], "overflow")) return overflow(0);
  if (!strcmp(words[2], "kill")) kill(getpid(), SIGKILL);
  if (!strcmp(words[2], "fork")) {
    time_t before = time(NULL);
    pid_t child = fork();
    // Ends like a child of multiprocessing: with its atexit handlers.
    if (child == 0) exit(0);
    int status;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 8;
    if (time(NULL) - before > 5) return 7;
  }
  puts("done");
  return 3;
}

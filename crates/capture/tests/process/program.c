// A program that loads the library like the CUDA driver does: program LIBRARY exit|fork|kill
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words) {
  void *library = dlopen(words[1], RTLD_NOW);
  int (*begin)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (!begin) return fprintf(stderr, "%s\n", dlerror()), 9;
  begin();
  usleep(1200 * 1000);
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

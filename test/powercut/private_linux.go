package powercut

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

const privateEnv = "CTXDIR_TEST_PRIVATE"

// InPrivate runs a program in a mount namespace of its own: again, in a child process. So whatever ends it, SIGKILL
// too, its mounts go, and with them its loop devices; and nobody else sees them. Without the rights for it the program
// runs as it is.
func InPrivate(program func() int) int {
	if os.Getenv(privateEnv) != "" || os.Geteuid() != 0 {
		return program()
	}
	self, err := os.Executable()
	if err != nil {
		return failed(err)
	}
	runtime.LockOSThread() // the child is to end with its parent, and that means this thread
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), privateEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// In a process group of its own an interrupt comes once, from here.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		signal.Stop(signals)
		return program()
	} else if err != nil {
		return failed(err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // fails when it has ended
		}
	}()
	err = cmd.Wait()
	var status *exec.ExitError
	if errors.As(err, &status) && status.Exited() {
		return status.ExitCode()
	}
	if err != nil {
		return failed(err)
	}
	return 0
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

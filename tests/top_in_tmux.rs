// SPDX-License-Identifier: GPL-2.0-only
//! Claim: on a terminal, which tmux is, `top` shows the running scheduler and puts the policy in force that a key
//! chooses. However it ends (by a key, a signal, an error or a panic) it leaves the terminal as it was. If there is
//! nothing to show, it says so in one line.

mod common;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{error_of, fake_scheduler, needs_root, scx_cosched, serve};

use scx_cosched::top::terminal;
use tempfile::TempDir;

/// With this in the environment, a test of this file is the program that panics.
const PANICS: &str = "COSCHED_TEST_PANICS";

/// A terminal of 80 columns and 24 lines, which a shell has.
struct Tmux(TempDir);

impl Tmux {
    fn new() -> Tmux {
        let dir = tempfile::tempdir().unwrap();
        let tmux = Tmux(dir);
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "env PS1='$ ' /bin/sh"]);
        tmux.wait("a prompt", |screen| screen.contains('$'));
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.0.path().join("tmux"))
            .args(args)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("this test needs tmux (Debian: apt install tmux)");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Types `text` and Enter into the shell.
    fn shell(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "no {what} on\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Fails if the terminal is not as a shell wants it: the first screen, with a cursor, line by line, with echo. The
    /// exit code of the last command is `code`.
    fn is_restored(&self, code: i32) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        // What is typed before the prompt is there is for the program, or is lost as that sets the terminal back.
        let has_ended = || {
            let is_first = self.run(&["display-message", "-p", "#{alternate_on}"]) == "0\n";
            is_first && self.screen().trim_end().ends_with("\n$")
        };
        while !has_ended() {
            assert!(Instant::now() < deadline, "it has not ended:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.shell("echo code=$?; stty -a | tr ';' '\\n' | grep -ow -e '-*icanon' -e '-*echo' -e '-*isig'; echo e''nd");
        let screen = self.wait("end", |screen| screen.lines().any(|line| line == "end"));
        assert!(screen.lines().any(|line| line.ends_with(&format!("code={code}"))), "{screen}");
        assert!(screen.contains("\nisig\nicanon\necho\nend"), "{screen}");
        assert_eq!(self.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]), "0 1\n", "{screen}");
        screen
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(self.0.path().join("tmux")).arg("kill-server").output();
    }
}

fn command(socket: &Path) -> String {
    format!("{} top --control-socket {}", env!("CARGO_BIN_EXE_scx_cosched"), socket.display())
}

fn policy(socket: &Path) -> String {
    let socket = socket.to_str().unwrap();
    String::from_utf8(scx_cosched(&["policy", "show", "--control-socket", socket]).stdout).unwrap()
}

#[test]
fn it_shows_the_scheduler_and_a_key_changes_the_policy() {
    needs_root();
    let (_dir, socket, _control) = serve(fake_scheduler());
    let tmux = Tmux::new();
    tmux.shell(&format!("{} --interval 0.2", command(&socket)));
    // What it says of lanes comes by the trace, the rest by snapshots.
    let screen = tmux.wait("lanes", |screen| screen.contains("cpu 0"));
    for part in ["scx_cosched 0.0.0 on Linux test", "last 0.", "dcs (arrival demand", "/slurm/job_7", "q: quit"] {
        assert!(screen.contains(part), "{part:?} is not on\n{screen}");
    }
    assert_eq!(screen.lines().count(), 24);

    tmux.keys(&["p"]);
    tmux.wait("list", |screen| screen.contains("Enter: put in force"));
    tmux.keys(&["Down", "Enter"]);
    tmux.wait("policy", |screen| screen.contains("policy dcs-sb is in force"));
    tmux.wait("policy", |screen| screen.contains("policy   dcs-sb ("));
    assert!(policy(&socket).starts_with("dcs-sb ("));

    tmux.keys(&["l"]);
    tmux.wait("no lanes", |screen| screen.contains("no lanes: off"));
    // Then somebody else may trace.
    let at = ["--control-socket", socket.to_str().unwrap()];
    assert!(scx_cosched(&["trace", "--seconds", "0.1", at[0], at[1]]).status.success());
    tmux.keys(&["l"]);
    tmux.wait("lanes", |screen| screen.contains("cpu 0"));

    tmux.run(&["resize-window", "-x", "100", "-y", "30"]);
    tmux.wait("30 lines", |screen| screen.lines().nth(29).is_some_and(|line| line.starts_with("q: quit")));
    tmux.keys(&["q"]);
    tmux.is_restored(0);
}

#[test]
fn colours_are_left_out_on_request() {
    needs_root();
    let (_dir, socket, _control) = serve(fake_scheduler());
    let has_colours = |before: &str, flags: &str| {
        let tmux = Tmux::new();
        tmux.shell(&format!("{before} {} {flags}", command(&socket)));
        tmux.wait("lanes", |screen| screen.contains("cpu 0"));
        let screen = tmux.run(&["capture-pane", "-p", "-e"]);
        assert!(screen.contains("\u{1b}["), "headings are bold, at least");
        tmux.keys(&["q"]);
        tmux.is_restored(0);
        screen.contains("\u{1b}[38;")
    };
    assert!(has_colours("NO_COLOR=", ""));
    assert!(!has_colours("NO_COLOR=1", ""));
    assert!(!has_colours("", "--no-colour"));
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    needs_root();
    let (_dir, socket, _control) = serve(fake_scheduler());
    for (signal, code) in [("HUP", 129), ("INT", 0), ("QUIT", 0), ("TERM", 0)] {
        let tmux = Tmux::new();
        tmux.shell(&command(&socket));
        tmux.wait("screen", |screen| screen.contains("q: quit"));
        let shell = tmux.run(&["display-message", "-p", "#{pane_pid}"]);
        let killed = Command::new("pkill").args([&format!("-{signal}"), "-P", shell.trim()]).status().unwrap();
        assert!(killed.success(), "{signal}");
        tmux.is_restored(code);
    }
}

#[test]
fn it_ends_with_its_terminal() {
    needs_root();
    let (_dir, socket, _control) = serve(fake_scheduler());
    let tmux = Tmux::new();
    tmux.shell(&format!("exec {}", command(&socket)));
    tmux.wait("screen", |screen| screen.contains("q: quit"));
    let pid = tmux.run(&["display-message", "-p", "#{pane_pid}"]);
    let server = tmux.run(&["display-message", "-p", "#{pid}"]);
    assert!(Command::new("kill").args(["-KILL", server.trim()]).status().unwrap().success());
    let deadline = Instant::now() + Duration::from_secs(60);
    while Path::new("/proc").join(pid.trim()).join("exe").exists() {
        assert!(Instant::now() < deadline, "it is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn when_the_scheduler_ends_it_says_so_in_a_line() {
    needs_root();
    let owner = fake_scheduler();
    let (_dir, socket, control) = serve(owner.clone());
    let tmux = Tmux::new();
    tmux.shell(&format!("{} --interval 0.2", command(&socket)));
    tmux.wait("screen", |screen| screen.contains("q: quit"));
    owner.stop();
    drop(control);
    let says = |screen: &str| screen.lines().filter(|line| line.starts_with("scx_cosched: error: ")).count() == 1;
    tmux.wait("error", says);
    assert!(says(&tmux.is_restored(1)));
}

/// Only with [`PANICS`] in the environment: the program that is run on the terminal.
#[test]
fn panics_on_a_terminal() {
    if std::env::var_os(PANICS).is_some() {
        let _ = terminal::with(|terminal| -> anyhow::Result<()> {
            terminal.draw(|frame| frame.render_widget("about to panic", frame.area()))?;
            std::thread::sleep(Duration::from_secs(1));
            panic!("this is what happened");
        });
    }
}

#[test]
fn a_panic_leaves_the_terminal_as_it_was_and_its_message_on_it() {
    let tmux = Tmux::new();
    let program = std::env::current_exe().unwrap();
    let test = "panics_on_a_terminal --exact --nocapture --test-threads=1";
    tmux.shell(&format!("RUST_BACKTRACE=0 {PANICS}=1 {} {test}", program.display()));
    tmux.wait("screen", |screen| screen.contains("about to panic"));
    tmux.wait("end", |screen| screen.contains("test result: FAILED"));
    let screen = tmux.is_restored(101);
    assert!(screen.contains("this is what happened") && !screen.contains("about to panic"), "{screen}");
}

#[test]
fn without_a_scheduler_or_a_terminal_it_says_so_in_a_line() {
    needs_root();
    let (message, code) = error_of(&["top", "--control-socket", "/no/such/directory/a.sock"]);
    let wanted = "no scheduler is running at /no/such/directory/a.sock (start one with 'run', or name its \
                  --control-socket)";
    assert_eq!((message.as_str(), code), (wanted, 1));

    let (_dir, socket, _control) = serve(fake_scheduler());
    let (message, code) = error_of(&["top", "--control-socket", socket.to_str().unwrap()]);
    assert_eq!(
        (message.as_str(), code),
        ("the output is no terminal (use 'status', or 'status --json' for programs)", 1)
    );
}

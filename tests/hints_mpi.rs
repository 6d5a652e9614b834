// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the library for MPI programs hands on what it is given, and what comes back, whatever the MPI's handles are.
//! On its own, since the server of hints sets the umask of its process for a moment, and a compiler would lose by it.

use std::process::Command;

/// Compiles C with the compiler that the build has.
fn compile(args: &[&str]) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let status =
        Command::new(compiler).args(["-std=c11", "-Wall", "-Werror"]).args(args).status().expect("a C compiler");
    assert!(status.success(), "{args:?}");
}

#[test]
fn the_mpi_library_hands_on_what_it_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    // An MPI like Open MPI, whose handles are pointers, and one like MPICH, whose handles are integers. What the
    // program would call without the library fails.
    let mpi = "#include \"types.h\"\n\
        int PMPI_Sendrecv(const void *a, int b, H c, int d, int e, void *f, int g, H h, int i, int j, H k, long *l) {\n\
        return a == (void *)-1 && b == -2 && c == (H)-3 && d == 4 && e == -5 && f == (void *)6 && g == -7 && h == (H)-8 \
        && i == 9 && j == -10 && k == (H)-11 && *l == 12 ? -42 : 1; }\n\
        int PMPI_Barrier(H a) { return a == (H)-1 ? 7 : 1; }\n\
        void pmpi_barrier_(int *a, int *error) { *error = *a == 3 ? 9 : 1; }\n\
        int MPI_Sendrecv(void) { return 99; }\nint MPI_Barrier(void) { return 99; }\nvoid mpi_barrier_(void) {}\n";
    let main = "#include \"types.h\"\n\
        int MPI_Sendrecv(const void *, int, H, int, int, void *, int, H, int, int, H, long *);\n\
        int MPI_Barrier(H);\nvoid mpi_barrier_(int *, int *);\n\
        int main(void) { long l = 12; int a = 3, error = 0;\n\
        if (MPI_Sendrecv((void *)-1, -2, (H)-3, 4, -5, (void *)6, -7, (H)-8, 9, -10, (H)-11, &l) != -42) return 1;\n\
        if (MPI_Barrier((H)-1) != 7) return 2;\n\
        mpi_barrier_(&a, &error); return error == 9 ? 0 : 3; }\n";
    let library = path("libcosched_mpi.so");
    compile(&["-O2", "-fPIC", "-shared", "-o", &library, "hints/mpi.c", "hints/cosched.c", "-pthread", "-ldl"]);
    for handle in ["void *", "int"] {
        write("types.h", &format!("typedef {handle} H;\n"));
        write("mpi.c", mpi);
        write("main.c", main);
        compile(&["-Wno-int-to-pointer-cast", "-fPIC", "-shared", "-o", &path("libmpi.so"), &path("mpi.c")]);
        let (program, there) = (path("main"), format!("-Wl,-rpath,{}", dir.path().display()));
        compile(&["-o", &program, &path("main.c"), &path("libmpi.so"), &there]);
        let mut program = Command::new(&program);
        let status = program.env("LD_PRELOAD", &library).env("COSCHED_HINTS_SOCKET", path("nobody")).status().unwrap();
        assert_eq!(status.code(), Some(0), "handles are {handle}");
    }
}

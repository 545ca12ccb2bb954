# shellcheck shell=bash source-path=SCRIPTDIR
# Where each rank executes its slice, a rank without the input, or with another one, is named before anything is proven.
. ./lib
# two_files FILE: rank 0 proves $WORK/x, and rank 1 reads FILE.
two_files() {
    local arguments=(--mpi --provers-per-rank 1 --keys "$WORK/keys" --proof "$T/proof" --execute ranks --root-proves no)
    env -u SLURM_CONF OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self OMPI_MCA_btl_tcp_if_include=lo \
        OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_vader_single_copy_mechanism=none \
        timeout -k 5 100 mpirun --oversubscribe --bind-to none -np 1 "$HEKATON" prove "$WORK/x" "${arguments[@]}" \
        : -np 1 "$HEKATON" prove "$1" "${arguments[@]}" : -np 1 "$HEKATON" prove "$WORK/x" "${arguments[@]}"
}
two_files "$T/missing" >"$T/missing.log" 2>&1
expect 3 "rank 1: error: $T/missing: .*each rank executes its part here and reads the input" "$T/missing.log"
all_gone 10
echo 8 >"$T/other"
two_files "$T/other" >"$T/other.log" 2>&1
expect 3 "rank 1 on .* has another input than rank 0" "$T/other.log"
all_gone 10
[ ! -e "$T/proof" ] || fail "there is a proof"

;; The places of some numbers among many, which follow each other in memory: 16 are looked at together.
;; `word-places.wasm` beside this is made of it: npx --package wabt@1.0.39 wat2wasm word-places.wat --output=word-places.wasm
(module
  (import "env" "memory" (memory 1))
  ;; Looks for `asked` numbers, of which there are `count`, in the `size` numbers from `words` on, and writes their places (u32, `first` and more)
  ;; from `out` on. Gives how many there are. It reads up to 60 bytes behind the words.
  (func (export "places")
    (param $words i32) (param $size i32) (param $first i32) (param $asked i32) (param $count i32) (param $out i32) (result i32)
    (local $from i32) (local $one i32) (local $end i32) (local $found i32) (local $number v128)
    (local $w0 v128) (local $w1 v128) (local $w2 v128) (local $w3 v128)
    (local $e0 v128) (local $e1 v128) (local $e2 v128) (local $e3 v128)
    (local.set $from (local.get $out))
    (local.set $end (i32.add (local.get $asked) (i32.shl (local.get $count) (i32.const 2))))
    (block $done
      (loop $next
        (br_if $done (i32.le_s (local.get $size) (i32.const 0)))
        (local.set $w0 (v128.load (local.get $words)))
        (local.set $w1 (v128.load offset=16 (local.get $words)))
        (local.set $w2 (v128.load offset=32 (local.get $words)))
        (local.set $w3 (v128.load offset=48 (local.get $words)))
        (local.set $e0 (v128.const i32x4 0 0 0 0))
        (local.set $e1 (local.get $e0))
        (local.set $e2 (local.get $e0))
        (local.set $e3 (local.get $e0))
        (local.set $one (local.get $asked))
        (block $compared
          (loop $more
            (br_if $compared (i32.ge_u (local.get $one) (local.get $end)))
            (local.set $number (v128.load32_splat (local.get $one)))
            (local.set $e0 (v128.or (local.get $e0) (i32x4.eq (local.get $w0) (local.get $number))))
            (local.set $e1 (v128.or (local.get $e1) (i32x4.eq (local.get $w1) (local.get $number))))
            (local.set $e2 (v128.or (local.get $e2) (i32x4.eq (local.get $w2) (local.get $number))))
            (local.set $e3 (v128.or (local.get $e3) (i32x4.eq (local.get $w3) (local.get $number))))
            (local.set $one (i32.add (local.get $one) (i32.const 4)))
            (br $more)))
        ;; One bit for each of the 16 numbers.
        (local.set $found
          (i8x16.bitmask
            (i8x16.narrow_i16x8_s
              (i16x8.narrow_i32x4_s (local.get $e0) (local.get $e1))
              (i16x8.narrow_i32x4_s (local.get $e2) (local.get $e3)))))
        (if (i32.lt_s (local.get $size) (i32.const 16))
          (then
            (local.set $found
              (i32.and (local.get $found) (i32.sub (i32.shl (i32.const 1) (local.get $size)) (i32.const 1))))))
        (block $written
          (loop $write
            (br_if $written (i32.eqz (local.get $found)))
            (i32.store (local.get $out) (i32.add (local.get $first) (i32.ctz (local.get $found))))
            (local.set $out (i32.add (local.get $out) (i32.const 4)))
            (local.set $found (i32.and (local.get $found) (i32.sub (local.get $found) (i32.const 1))))
            (br $write)))
        (local.set $words (i32.add (local.get $words) (i32.const 64)))
        (local.set $first (i32.add (local.get $first) (i32.const 16)))
        (local.set $size (i32.sub (local.get $size) (i32.const 16)))
        (br $next)))
    (i32.shr_u (i32.sub (local.get $out) (local.get $from)) (i32.const 2))))

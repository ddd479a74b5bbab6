;; The dot products of one vector of bytes with many, which follow each other in memory: 16 numbers at a time.
;; `dots.wasm` beside this is made of it: npx --package wabt@1.0.39 wat2wasm dots.wat --output=dots.wasm
(module
  (import "env" "memory" (memory 1))
  ;; `size` is a multiple of 16. Writes `count` sums (i32) from `out` on.
  (func (export "dots") (param $rows i32) (param $query i32) (param $count i32) (param $size i32) (param $out i32)
    (local $end i32) (local $row v128) (local $given v128) (local $sum v128) (local $of i32)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $sum (v128.const i32x4 0 0 0 0))
        (local.set $of (local.get $query))
        (local.set $end (i32.add (local.get $rows) (local.get $size)))
        (loop $more
          (local.set $row (v128.load (local.get $rows)))
          (local.set $given (v128.load (local.get $of)))
          (local.set $sum
            (i32x4.add
              (local.get $sum)
              (i32x4.add
                (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $row)) (i16x8.extend_low_i8x16_s (local.get $given)))
                (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $row)) (i16x8.extend_high_i8x16_s (local.get $given))))))
          (local.set $of (i32.add (local.get $of) (i32.const 16)))
          (br_if $more (i32.lt_u (local.tee $rows (i32.add (local.get $rows) (i32.const 16))) (local.get $end))))
        (i32.store
          (local.get $out)
          (i32.add
            (i32.add (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 1 (local.get $sum)))
            (i32.add (i32x4.extract_lane 2 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))))

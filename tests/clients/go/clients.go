// SPDX-License-Identifier: BSD-3-Clause

// Package clients names the Go client whose own tests are run, so that its version and hash are pinned here.
package clients

import _ "github.com/bradfitz/gomemcache/memcache"

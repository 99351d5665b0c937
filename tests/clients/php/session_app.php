<?php
// SPDX-License-Identifier: BSD-3-Clause
// What python/php_sessions.py visits: counts in the session, adds to a basket, or leaves.
session_start();
if ($_SERVER['REQUEST_URI'] === '/leave') {
	session_destroy();
	echo json_encode(['left' => true]);
	return;
}
if ($_SERVER['REQUEST_URI'] === '/renew')
	session_regenerate_id(true);
$_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1;
$_SESSION['basket'][] = ['item' => $_SESSION['visits'], 'note' => str_repeat("\u{20ac}", 200)];
echo json_encode(['visits' => $_SESSION['visits'], 'items' => count($_SESSION['basket']),
	'right' => array_column($_SESSION['basket'], 'item') === range(1, $_SESSION['visits'])]);
